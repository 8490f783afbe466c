"""Sources whose records say what they do to the rows: by a weight, or by the name of an operation.

The field that says it is no data: it is NULL in every row, so that a row and its retraction are one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.changelogs import WEIGHTS, field_of, is_retract
from laminae.spark.contract import ERROR, ROW
from laminae.spark.expression import Expression, call, cases, column, first_text, literal, when
from laminae.trace.spec import WEIGHT
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from laminae.catalog.model import SourceRecord, VersionRecord

NO_WEIGHT = "{name} is NULL and says what the record does"
NO_OPERATION = "{name} is no operation: "


@dataclass(frozen=True, slots=True)
class Weights:
    """The field of a source that gives its records their weight, by a number or by the name of an operation."""

    field: str
    is_operation: bool

    def weight(self, value: Expression) -> Expression:
        if not self.is_operation:
            return value.cast("BIGINT")
        return cases([(value.compared("=", literal(name)), literal(weight)) for name, weight in WEIGHTS.items()])

    @property
    def fits(self) -> str:
        """The condition on rows that say what they do."""
        return self.weight(column(self.field)).is_there().sql

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, those that do not say what they do with an error."""
        value = column(ROW).field(self.field)
        reasons = [when(value.is_null(), literal(NO_WEIGHT.format(name=self.field)))]
        if self.is_operation:
            strange = call("concat", literal(NO_OPERATION.format(name=self.field)), value)
            reasons.append(when(self.weight(value).is_null(), strange))
        return records.withColumn(ERROR, first_text([column(ERROR), *reasons]).column)

    def changes(self, rows: DataFrame) -> DataFrame:
        """The rows with `_weight`; those that change nothing are left out."""
        weight = self.weight(column(self.field)).cast("BIGINT").column
        kind = rows.schema[self.field].dataType
        found = rows.withColumn(WEIGHT, weight).where(F.col(WEIGHT) != 0)
        return found.withColumn(self.field, F.lit(None).cast(kind))


def weights_of(source: SourceRecord, versions: Sequence[VersionRecord]) -> Weights | None:
    """None for a source whose records are rows."""
    if not is_retract(source):
        return None
    operation = field_of(source, versions, "op_field")
    field = operation or field_of(source, versions, "weight_field")
    assert field is not None  # one of them is given, see `check_changelog`
    return Weights(field, operation is not None)


def net_rows(changes: DataFrame) -> DataFrame:
    """Each row as often as its weights say; one that was only taken back is not there."""
    names = [quoted(name) for name in changes.columns if name != WEIGHT]
    net = changes.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) > 0)
    times = F.explode(F.expr(f"sequence(1L, {WEIGHT})")).alias(WEIGHT)
    return net.select(*names, times).drop(WEIGHT)
