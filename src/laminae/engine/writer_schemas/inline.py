"""Inline schemas of Debezium messages: each distinct one is judged, applied and bound once, like a registry schema.

A Kafka Connect message with `schema` and `payload` starts with the same bytes until its table changes: its head. The
binding of a head is stored in the catalog, so every record is decoded again as it was decoded first. No Spark here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.catalog.updates import BindWriter
from laminae.codec.debezium.connect_schema import event_columns
from laminae.codec.decoders import Head
from laminae.codec.value_encodings import by_looks
from laminae.engine.evolution.aliases import former_names_of
from laminae.engine.ports import FoundSchema
from laminae.engine.source_spec import spec_of
from laminae.engine.writer_schemas.binding import NOTHING, as_of, refusal_of
from laminae.engine.writer_schemas.columns import bound_columns, grown_columns
from laminae.errors import InvalidSchema
from laminae.schema.column import columns_of
from laminae.schema.evolvable import EvolutionTrigger, NeedsConfirmation, Rejected
from laminae.schema.external.writer_schema import misfit
from laminae.schema.identity import with_initial_defaults

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from laminae.catalog.model import SourceRecord, WriterRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.engine.source_spec import EventSpec

BEGIN, PAYLOAD = '{"schema":', '"payload":'


def sent_columns(schema: pa.Schema, events: EventSpec) -> pa.Schema:
    """The columns of events that do not state their types.

    An event is the full image of a row, and its before image must equal the stored row. So a column that events lack
    has the same value, its initial default, in all of them.
    """
    return by_looks(with_initial_defaults(schema), events.time_unit, events.decimal)


def head_of(writer: WriterRecord) -> Head:
    return Head(writer.avro, -writer.schema_id if tells_columns(writer) else None, writer.refusal)


def tells_columns(writer: WriterRecord) -> bool:
    return len(writer.columns) > 0 and writer.refusal is None


@dataclass(frozen=True, slots=True)
class Heads:
    """Binds the heads (inline schemas) of a source's messages, under the lease of a driver."""

    catalog: Catalog
    engine: Engine
    lease_token: int | None = None

    def meet(self, source_name: str, texts: Iterable[str]) -> tuple[int, ...]:
        """The numbers of these heads, after the source has applied or refused the changes that their schemas imply."""
        return tuple(self._meet(source_name, text) for text in texts)

    def ask_again(self, source_name: str) -> None:
        """Judge refused heads again: the definition of the source may have changed."""
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
        columns = inline_columns(text)
        binding = BindWriter(source.id, number, number, True, None, text, NOTHING)
        if columns is not None:
            binding = self._taken(source, binding, columns, known)
        if present is None or (present.refusal, present.applied) != (binding.refusal, binding.applied):
            self.catalog.commit([binding], lease_token=self.lease_token)
        return number

    def _taken(
        self, source: SourceRecord, made: BindWriter, schema: pa.Schema, known: tuple[WriterRecord, ...]
    ) -> BindWriter:
        other_writers = [writer for writer in known if writer.schema_id != made.schema_id]
        newest = next((writer for writer in reversed(other_writers) if writer.applied and len(writer.columns)), None)
        before = None if newest is None else newest.columns
        former = former_names_of(self.catalog, source)
        refusal, is_taken = None, True
        if spec_of(source).evolves:
            # Undeclared fields count as new in the first message, as they do in messages without a schema.
            proposed = grown_columns(source, before or NOTHING, bound_columns(source, schema, before, former))
            result = self.engine.propose(
                source.name, FoundSchema(proposed), EvolutionTrigger.DATA, source.version, self.lease_token
            )
            refusal, is_taken = refusal_of(source, result), not isinstance(result, Rejected | NeedsConfirmation)
            source = self.engine.source(source.name)
        columns = bound_columns(source, schema, before, former)
        why = refusal or misfit(columns, source.schema)
        return replace(made, applied=is_taken, refusal=why, columns=columns)


def inline_columns(text: str) -> pa.Schema | None:
    """The columns in the schema of a head; None if it has none."""
    try:
        columns = event_columns(json.loads(text[len(BEGIN) : text.rindex(PAYLOAD)].rstrip().rstrip(",")))
        if columns is not None:
            columns_of(columns)
    except (ValueError, InvalidSchema):
        return None
    return columns
