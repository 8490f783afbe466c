"""What a source writes into its rows when they come or go: the column that its options name for that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.changelogs import DEBEZIUM, RETRACT, UPSERT, changelog_of
from laminae.errors import InvalidOption
from laminae.spark.contract import ERROR, ROW

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import DecoderTable

# (changelog, option): what the named column holds in a row that comes, and in one that goes.
MARKS: dict[tuple[str, str], tuple[object, object]] = {
    (RETRACT, "op_field"): ("+I", "-D"),
    (RETRACT, "weight_field"): (1, -1),
    (UPSERT, "deleted_by"): (False, True),
}
CHANGE_TYPE = "_change_type"
INSERT, BEFORE, AFTER, DELETE = "insert", "update_preimage", "update_postimage", "delete"
NOT_TAKEN_BACK = (
    "the source does not take rows back: that needs changelog = 'retract' with op_field, or 'upsert' with deleted_by"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """`field` is the column under the name that the option has."""

    option: str
    field: str
    came: object
    went: object


@dataclass(frozen=True, slots=True)
class Marks:
    """How a source says what a row does; without a mark it cannot take rows back."""

    source: str
    changelog: str
    mark: Mark | None

    @property
    def cancels(self) -> bool:
        """Whether rows that came and went leave nothing; of a table by key the row before them is not told."""
        return self.changelog == RETRACT

    def marked(self, records: DataFrame, gone: Collection[int], table: DecoderTable) -> DataFrame:
        """Decoded records of files with the mark in their rows; those of the items `gone` take their rows back."""
        goes = F.col("item").isin(*gone) if gone else F.lit(False)
        return records if self.mark is None else self._with_mark(records, goes, self.mark, table)

    def said(self, records: DataFrame, table: DecoderTable) -> DataFrame:
        """The same of records that have a `_change_type`, see `reading_changes`."""
        kind = F.col(ROW)[CHANGE_TYPE]
        found = records
        if self.changelog == UPSERT:
            # The row after it has the same key.
            found = records.where(kind.isNull() | (kind != BEFORE))
        goes = kind.isin(BEFORE, DELETE)
        if self.mark is not None:
            found = self._with_mark(found, goes, self.mark, table)
        else:
            refused = goes if self.changelog == UPSERT else kind != INSERT
            reason = F.concat(F.lit("the row says "), kind, F.lit(f", and {NOT_TAKEN_BACK}"))
            found = found.withColumn(ERROR, F.coalesce(F.col(ERROR), F.when(refused, reason)))
        is_own = CHANGE_TYPE in table.current.names
        return found if is_own else found.withColumn(ROW, F.col(ROW).dropFields(CHANGE_TYPE))

    def _with_mark(self, records: DataFrame, goes: Column, mark: Mark, table: DecoderTable) -> DataFrame:
        name = live_name(mark.field, table)
        if name is None:
            raise InvalidOption(
                option=mark.option,
                owner=self.source,
                problem=f"{mark.field} is not the name of a column any more",
                advice=f"Rename the column back to {mark.field}.",
            )
        return with_value(records, name, F.when(goes, F.lit(mark.went)).otherwise(F.lit(mark.came)))


def with_value(records: DataFrame, name: str, value: Column) -> DataFrame:
    """Decoded records with another value in one column of their rows, in the type that it has."""
    kind = records.schema[ROW].dataType[name].dataType  # type: ignore[index]  # a row is a struct
    return records.withColumn(ROW, F.col(ROW).withField(f"`{name.replace('`', '``')}`", value.cast(kind)))


def live_name(name: str, table: DecoderTable) -> str | None:
    """The present name of a column that had this one."""
    return name if name in table.current.names else dict(table.decoders[-1].aliases).get(name)


def reading_changes(table: DecoderTable) -> DecoderTable:
    """The table for files whose rows say what they do: with the column that says it."""
    decoders = tuple(replace(decoder, schema=_with_change_type(decoder.schema)) for decoder in table.decoders)
    return replace(table, decoders=decoders, current=_with_change_type(table.current))


def _with_change_type(schema: pa.Schema) -> pa.Schema:
    return schema if CHANGE_TYPE in schema.names else schema.append(pa.field(CHANGE_TYPE, pa.string()))


def marks_of(source: SourceRecord) -> Marks:
    kind, given = changelog_of(source.options), dict(source.options)
    if kind == DEBEZIUM:
        raise InvalidOption(
            option="changelog",
            owner=source.name,
            problem="the rows of a table are no Debezium events",
            advice="Use 'append', 'upsert' or 'retract'.",
        )
    found = [
        Mark(option, given[option], came, went)
        for (changelog, option), (came, went) in MARKS.items()
        if kind == changelog and option in given
    ]
    return Marks(source.name, kind, found[0] if found else None)
