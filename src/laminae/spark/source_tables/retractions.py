"""Retract sources: a field of each record has its weight, or the name of its operation.

This field is not data: it is set to NULL in every row, so that an insert and its retraction are equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.changelogs import WEIGHTS, field_of
from laminae.engine.source_spec import spec_of
from laminae.spark.catalyst.expression import Expression, call, cases, column, first_text, literal, when
from laminae.spark.formats.protocol import ERROR, ROW
from laminae.trace.spec import WEIGHT
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from laminae.catalog.model import SourceRecord, VersionRecord

NO_WEIGHT = "{name}, which holds the change of the record, is NULL"
NO_OPERATION = "{name} is not an operation: "


@dataclass(frozen=True, slots=True)
class Weights:
    """The field of a source that determines the weight of a record: a number, or the name of an operation."""

    field: str
    is_operation: bool

    def weight(self, value: Expression) -> Expression:
        if not self.is_operation:
            return value.cast("BIGINT")
        return cases([(value.compared("=", literal(name)), literal(weight)) for name, weight in WEIGHTS.items()])

    @property
    def fits(self) -> str:
        """The SQL condition that a row has a valid weight or operation."""
        return self.weight(column(self.field)).is_there().sql

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, with an error set on those without a valid weight or operation."""
        value = column(ROW).field(self.field)
        reasons = [when(value.is_null(), literal(NO_WEIGHT.format(name=self.field)))]
        if self.is_operation:
            strange = call("concat", literal(NO_OPERATION.format(name=self.field)), value)
            reasons.append(when(self.weight(value).is_null(), strange))
        return records.withColumn(ERROR, first_text([column(ERROR), *reasons]).column)

    def changes(self, rows: DataFrame) -> DataFrame:
        """The rows with `_weight`; rows of weight 0 are left out."""
        weight = self.weight(column(self.field)).cast("BIGINT").column
        kind = rows.schema[self.field].dataType
        changes = rows.withColumn(WEIGHT, weight).where(F.col(WEIGHT) != 0)
        return changes.withColumn(self.field, F.lit(None).cast(kind))


def weights_of(source: SourceRecord, versions: Sequence[VersionRecord]) -> Weights | None:
    """None for a source without retractions."""
    if not spec_of(source).is_retract:
        return None
    operation = field_of(source, versions, "op_field")
    field = operation or field_of(source, versions, "weight_field")
    assert field is not None  # one of them is given, see `check_changelog`
    return Weights(field, operation is not None)


def net_rows(changes: DataFrame) -> DataFrame:
    """Each row repeated as often as the sum of its weights; rows with a sum of zero or less are left out."""
    names = [quoted(name) for name in changes.columns if name != WEIGHT]
    net = changes.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) > 0)
    times = F.explode(F.expr(f"sequence(1L, {WEIGHT})")).alias(WEIGHT)
    return net.select(*names, times).drop(WEIGHT)
