"""COUNT, SUM and AVG of one group: their state is a few numbers. SQL's rules for NULL, and exact to the last digit.

Only the result must fit its type: an intermediate sum that exceeds it is not an overflow.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Self

import pyarrow as pa

from laminae.errors import ValueOverflow
from laminae.zset.averages import AVG_DIGITS, divided
from laminae.zset.library.aggregator import RetractableAggregator
from laminae.zset.library.total import EXACT, Number, Total, scale_of, unscaled
from laminae.zset.operation import INT64_MAX, INT64_MIN

LARGEST_PRECISION = 38


class CountAggregator(RetractableAggregator[int]):
    """COUNT(*): rows, whatever they contain. Negative while retractions are ahead of their inserts."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def update(self, value: object, weight: int) -> None:
        self._count += weight

    def merge(self, other: Self) -> None:
        self._count += other._count

    def finalize(self) -> int:
        return _within_int64(self._count, "COUNT")

    def reset(self) -> None:
        self._count = 0

    def supports_efficient_retraction(self) -> bool:
        return True


class CountValueAggregator(CountAggregator):
    """COUNT(x): rows in which x is not NULL."""

    __slots__ = ()

    def update(self, value: object, weight: int) -> None:
        if value is not None:
            self._count += weight


class SumAggregator(RetractableAggregator[Number | None]):
    """SUM(x): exact; NULL if there are no values. Only the result must fit `result_type`, not intermediate sums.

    Without a type, integers must fit BIGINT and decimals 38 digits.
    """

    __slots__ = ("_total", "result_type")

    def __init__(self, result_type: pa.DataType | None = None) -> None:
        self._total = Total()
        self.result_type = result_type

    def update(self, value: object, weight: int) -> None:
        if value is not None:
            self._total.add(value, weight)

    def merge(self, other: Self) -> None:
        self._total.merge(other._total)

    def finalize(self) -> Number | None:
        return None if self._total.is_nothing() else _fitting(self._total.value, self.result_type, "SUM")

    def reset(self) -> None:
        self._total = Total()

    def supports_efficient_retraction(self) -> bool:
        return True


class AvgAggregator(SumAggregator):
    """AVG(x): a double; for decimals a decimal with four more digits, rounded half up. NULL if there are no values."""

    __slots__ = ()

    def finalize(self) -> Number | None:
        count = self._total.count
        if count <= 0:
            return None
        match self._total.value:
            case Decimal() as total:
                result_type = self.result_type
                scale = (
                    result_type.scale
                    if result_type is not None
                    else min(scale_of(total) + AVG_DIGITS, LARGEST_PRECISION)
                )
                finer = max(scale_of(total), scale)
                quotient = divided(unscaled(total, finer), count * 10 ** (finer - scale))
                return _fitting(Decimal(quotient).scaleb(-scale, EXACT), result_type, "AVG")
            case total:
                return total / count


def _fitting(value: Number, result_type: pa.DataType | None, aggregate: str) -> Number:
    """The value converted to its type. Overflow is checked only here."""
    match value:
        case int() if result_type is None or not pa.types.is_decimal(result_type):
            return _within_int64(value, aggregate)
        case int() | Decimal():
            precision, scale = LARGEST_PRECISION, scale_of(Decimal(value))
            if result_type is not None:
                precision, scale = result_type.precision, result_type.scale
            number = unscaled(Decimal(value), scale)
            if abs(number) >= 10**precision:
                kind = f"DECIMAL({precision}, {scale})"
                raise ValueOverflow(aggregate=aggregate, what="the values", value=value, type=kind)
            return Decimal(number).scaleb(-scale, EXACT)
        case _:
            return value


def _within_int64(value: int, aggregate: str) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise ValueOverflow(aggregate=aggregate, what="the values", value=value, type="BIGINT")
    return value
