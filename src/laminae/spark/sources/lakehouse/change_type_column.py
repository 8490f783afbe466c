"""The change type column: how a lakehouse source marks its rows as inserted or deleted, in a column named by an option.

Rows get their mark from the file that holds them (added or removed), or from `_change_type` of a change data feed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.source_spec import Changelog, spec_of
from laminae.errors import InvalidOption
from laminae.schema.identifiers import quoted
from laminae.spark.formats.protocol import ERROR, ROW
from laminae.spark.sources.lakehouse.table_files import Change

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import DecoderTable
    from laminae.spark.sources.lakehouse.table_files import TableFile

# (changelog, option): the value of the named column in an inserted row, and in a deleted row.
MARKS: dict[tuple[Changelog, str], tuple[object, object]] = {
    (Changelog.RETRACT, "op_field"): ("+I", "-D"),
    (Changelog.RETRACT, "weight_field"): (1, -1),
    (Changelog.UPSERT, "deleted_by"): (False, True),
}
CHANGE_TYPE = "_change_type"
INSERT, BEFORE, AFTER, DELETE = "insert", "update_preimage", "update_postimage", "delete"
NOT_TAKEN_BACK = (
    "the source cannot retract rows: that needs changelog = 'retract' with op_field, or 'upsert' with deleted_by"
)
REMOVED = f"snapshot {{snapshot}} removes the rows of this file, and {NOT_TAKEN_BACK}"


@dataclass(frozen=True, slots=True)
class Mark:
    """The column `field`, by the name that the option gives, and its values for an inserted and a deleted row."""

    option: str
    field: str
    came: object
    went: object


@dataclass(frozen=True, slots=True)
class Marks:
    """How a source marks inserts and deletes; without a `mark` it cannot retract rows."""

    source: str
    changelog: Changelog
    mark: Mark | None

    @property
    def cancels(self) -> bool:
        """Whether an insert and a later delete of a row cancel out. With upsert they do not: together they remove the
        row that its key had before, which is not among them.
        """
        return self.changelog is Changelog.RETRACT

    def reads(self, entry: TableFile) -> bool:
        """Whether the rows of a file are read at all."""
        return entry.change is not Change.NOTHING and not self.refusal(entry)

    def refusal(self, entry: TableFile) -> str:
        """Why a file is a dead letter as a whole; empty if it is not."""
        if entry.change is Change.REMOVED and self.mark is None:
            return REMOVED.format(snapshot=entry.snapshot)
        return entry.reason or ""

    def marked(self, records: DataFrame, gone: Collection[int], table: DecoderTable) -> DataFrame:
        """Decoded records with the mark set in their rows; the rows of the items in `gone` are marked as deleted."""
        goes = F.col("item").isin(*gone) if gone else F.lit(False)
        return records if self.mark is None else self._with_mark(records, goes, self.mark, table)

    def said(self, records: DataFrame, table: DecoderTable) -> DataFrame:
        """The same for records that have a `_change_type`, see `reading_changes`."""
        kind = F.col(ROW)[CHANGE_TYPE]
        changes = records
        if self.changelog is Changelog.UPSERT:
            # The postimage has the same key and replaces the row.
            changes = records.where(kind.isNull() | (kind != BEFORE))
        goes = kind.isin(BEFORE, DELETE)
        if self.mark is not None:
            changes = self._with_mark(changes, goes, self.mark, table)
        else:
            refused = goes if self.changelog is Changelog.UPSERT else kind != INSERT
            reason = F.concat(F.lit("the row says "), kind, F.lit(f", and {NOT_TAKEN_BACK}"))
            changes = changes.withColumn(ERROR, F.coalesce(F.col(ERROR), F.when(refused, reason)))
        is_own = CHANGE_TYPE in table.current.names
        return changes if is_own else changes.withColumn(ROW, F.col(ROW).dropFields(CHANGE_TYPE))

    def _with_mark(self, records: DataFrame, goes: Column, mark: Mark, table: DecoderTable) -> DataFrame:
        name = live_name(mark.field, table)
        if name is None:
            raise InvalidOption(
                option=mark.option,
                owner=self.source,
                problem=f"{mark.field} is no longer the name of a column",
                advice=f"Rename the column back to {mark.field}.",
            )
        return with_value(records, name, F.when(goes, F.lit(mark.went)).otherwise(F.lit(mark.came)))


def with_value(records: DataFrame, name: str, value: Column) -> DataFrame:
    """Decoded records with this value in one column of their rows, cast to the type of the column."""
    kind = records.schema[ROW].dataType[name].dataType  # type: ignore[index]  # a row is a struct
    return records.withColumn(ROW, F.col(ROW).withField(quoted(name), value.cast(kind)))


def live_name(name: str, table: DecoderTable) -> str | None:
    """The current name of the column that has, or formerly had, this name; None if there is none."""
    return name if name in table.current.names else dict(table.decoders[-1].aliases).get(name)


def reading_changes(table: DecoderTable) -> DecoderTable:
    """The decoder table for change data files: with the column `_change_type` added to its schemas."""
    decoders = tuple(replace(decoder, schema=_with_change_type(decoder.schema)) for decoder in table.decoders)
    return replace(table, decoders=decoders, current=_with_change_type(table.current))


def _with_change_type(schema: pa.Schema) -> pa.Schema:
    return schema if CHANGE_TYPE in schema.names else schema.append(pa.field(CHANGE_TYPE, pa.string()))


def marks_of(source: SourceRecord) -> Marks:
    kind, fields = spec_of(source).changelog, spec_of(source).fields.named()
    if kind is Changelog.DEBEZIUM:
        raise InvalidOption(
            option="changelog",
            owner=source.name,
            problem="the rows of a table are not Debezium events",
            advice="Use 'append', 'upsert' or 'retract'.",
        )
    marks = [
        Mark(option, fields[option], added, removed)
        for (changelog, option), (added, removed) in MARKS.items()
        if kind == changelog and option in fields
    ]
    return Marks(source.name, kind, marks[0] if marks else None)
