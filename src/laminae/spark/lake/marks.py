"""What a source writes into its rows when a file comes or goes: the column that its options name for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.changelogs import DEBEZIUM, RETRACT, UPSERT, changelog_of
from laminae.errors import InvalidOption
from laminae.spark.contract import ROW

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import DecoderTable

# (changelog, option): what the named column holds in a row that comes, and in one that goes.
MARKS: dict[tuple[str, str], tuple[object, object]] = {
    (RETRACT, "op_field"): ("+I", "-D"),
    (RETRACT, "weight_field"): (1, -1),
    (UPSERT, "deleted_by"): (False, True),
}


@dataclass(frozen=True, slots=True)
class Marks:
    """`field` is the column under the name that the option has. With `cancels`, what came and went leaves nothing."""

    source: str
    option: str
    field: str
    came: object
    went: object
    cancels: bool

    def marked(self, records: DataFrame, gone: Collection[int], table: DecoderTable) -> DataFrame:
        """Decoded records with the mark in their rows; those of the items `gone` take their rows back."""
        name = self._name(table)
        kind = records.schema[ROW].dataType[name].dataType  # type: ignore[index]  # a row is a struct
        mark = F.lit(self.came)
        if gone:
            mark = F.when(F.col("item").isin(*gone), F.lit(self.went)).otherwise(mark)
        return records.withColumn(ROW, F.col(ROW).withField(f"`{name.replace('`', '``')}`", mark.cast(kind)))

    def _name(self, table: DecoderTable) -> str:
        if self.field in table.current.names:
            return self.field
        former = dict(table.decoders[-1].aliases)
        if self.field not in former:
            raise InvalidOption(
                option=self.option,
                owner=self.source,
                problem=f"{self.field} is not the name of a column any more",
                advice=f"Rename the column back to {self.field}.",
            )
        return former[self.field]


def marks_of(source: SourceRecord) -> Marks | None:
    """None where the source cannot take rows back."""
    kind, given = changelog_of(source.options), dict(source.options)
    if kind == DEBEZIUM:
        raise InvalidOption(
            option="changelog",
            owner=source.name,
            problem="the rows of a table are no Debezium events",
            advice="Use 'append', 'upsert' or 'retract'.",
        )
    for (changelog, option), (came, went) in MARKS.items():
        if kind == changelog and option in given:
            return Marks(source.name, option, given[option], came, went, cancels=kind == RETRACT)
    return None
