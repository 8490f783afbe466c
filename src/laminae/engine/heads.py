"""Schemas that Debezium's messages bring along: each is met once, judged, applied and bound like a registry's.

A message of Kafka Connect with `schema` and `payload` begins with the same bytes until its table changes: its head.
What a head was bound to is in the catalog, so every record is read again as it was read first. No Spark here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.catalog.updates import BindWriter
from laminae.codec.connect_schema import event_columns
from laminae.codec.decoders import Head
from laminae.codec.sent_values import by_looks
from laminae.engine.changelogs import DEBEZIUM, changelog_of
from laminae.engine.event_columns import bound_columns, grown_columns
from laminae.engine.former_names import former_names_of
from laminae.engine.options import is_framed, option
from laminae.engine.ports import FoundSchema
from laminae.engine.writers import NOTHING, as_of, refusal_of
from laminae.errors import InvalidSchema
from laminae.schema.column import columns_of
from laminae.schema.evolvable import EvolutionTrigger, NeedsConfirmation, Rejected
from laminae.schema.writer import misfit

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from laminae.catalog.model import Options, SourceRecord, WriterRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine

BEGIN, PAYLOAD = '{"schema":', '"payload":'


def has_writers(options: Options) -> bool:
    """Whether the catalog keeps what records of such a source were written with."""
    return is_framed(options) or brings_schemas(options)


def brings_schemas(options: Options) -> bool:
    """Whether a record may have its schema with it."""
    return changelog_of(options) == DEBEZIUM and not is_framed(options)


def sent_columns(schema: pa.Schema, options: Options) -> pa.Schema:
    """The columns of events that do not tell their types."""
    return by_looks(schema, option(options, "debezium.time") or "", option(options, "debezium.decimal") or "")


def head_of(writer: WriterRecord) -> Head:
    return Head(writer.avro, -writer.schema_id if tells_columns(writer) else None, writer.refusal)


def tells_columns(writer: WriterRecord) -> bool:
    return len(writer.columns) > 0 and writer.refusal is None


@dataclass(frozen=True, slots=True)
class Heads:
    """Binds the heads of a source's messages, under the lease of a driver."""

    catalog: Catalog
    engine: Engine
    lease_token: int | None = None

    def meet(self, source_name: str, texts: Iterable[str]) -> tuple[int, ...]:
        """Their numbers, after the source has taken what their schemas ask for, or has refused to."""
        return tuple(self._meet(source_name, text) for text in texts)

    def ask_again(self, source_name: str) -> None:
        """Look once more at heads that were refused: the source may have become another."""
        source = self.engine.source(source_name)
        for writer in as_of(self.catalog.writers(source.id)):
            if writer.refusal is not None:
                self._meet(source_name, writer.avro)

    def _meet(self, source_name: str, text: str) -> int:
        source = self.engine.source(source_name)
        known = as_of(self.catalog.writers(source.id))
        present = next((writer for writer in known if writer.avro == text), None)
        if present is not None and present.applied and present.refusal is None:
            return present.schema_id
        number = present.schema_id if present is not None else 1 + max((w.schema_id for w in known), default=0)
        told = told_columns(text)
        made = BindWriter(source.id, number, number, True, None, text, NOTHING)
        if told is not None:
            made = self._taken(source, made, told, known)
        if present is None or (present.refusal, present.applied) != (made.refusal, made.applied):
            self.catalog.commit([made], lease_token=self.lease_token)
        return number

    def _taken(
        self, source: SourceRecord, made: BindWriter, told: pa.Schema, known: tuple[WriterRecord, ...]
    ) -> BindWriter:
        others = [writer for writer in known if writer.schema_id != made.schema_id]
        newest = next((writer for writer in reversed(others) if writer.applied and len(writer.columns)), None)
        before = None if newest is None else newest.columns
        former = former_names_of(self.catalog, source)
        refusal, is_taken = None, True
        if option(source.options, "evolve") != "off":
            # Fields that a person did not declare are new with the first message, as they are without a schema.
            asked = grown_columns(source, before or NOTHING, bound_columns(source, told, before, former))
            result = self.engine.propose(
                source.name, FoundSchema(asked), EvolutionTrigger.DATA, source.version, self.lease_token
            )
            refusal, is_taken = refusal_of(source, result), not isinstance(result, Rejected | NeedsConfirmation)
            source = self.engine.source(source.name)
        columns = bound_columns(source, told, before, former)
        why = refusal or misfit(columns, source.schema)
        return replace(made, applied=is_taken, refusal=why, columns=columns)


def told_columns(text: str) -> pa.Schema | None:
    """The columns that a head tells; None: it tells none."""
    try:
        found = event_columns(json.loads(text[len(BEGIN) : text.rindex(PAYLOAD)].rstrip().rstrip(",")))
        if found is not None:
            columns_of(found)
    except (ValueError, InvalidSchema):
        return None
    return found
