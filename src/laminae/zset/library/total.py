"""The exact sum of one group's numbers: integers, decimals and doubles, in any order, with retractions.

Nothing is rounded and nothing overflows before `value` is read. For many groups at once, see `grouped.py`.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, Inexact, InvalidOperation
from numbers import Integral, Real

from laminae.zset.exact_float import float_of_units, float_units

EXACT = Context(prec=1000, traps=[Inexact, InvalidOperation])
"""Enough precision for 38 digits times a weight of 19 digits, summed any number of times. Rounding here would be a bug,
so it traps."""

Number = int | float | Decimal


class Total:
    """`count` is the sum of the weights; `value` is the sum of the values, in the type of the input."""

    __slots__ = (
        "_decimals",
        "_has_decimals",
        "_has_floats",
        "_nans",
        "_negative",
        "_positive",
        "_units",
        "_whole",
        "count",
    )

    def __init__(self) -> None:
        self.count = 0
        self._whole = 0
        self._decimals = Decimal(0)
        self._units = 0
        self._nans = self._positive = self._negative = 0
        self._has_decimals = self._has_floats = False

    def add(self, value: object, weight: int) -> None:
        match value:
            case bool():
                raise TypeError("a truth value cannot be summed")
            case Integral():
                self._whole += int(value) * weight
            case Decimal():
                self._add_decimal(value, weight)
            case Real():
                self._add_float(float(value), weight)
            case _:
                raise TypeError(f"a {type(value).__name__} cannot be summed")
        self.count += weight

    def _add_decimal(self, value: Decimal, weight: int) -> None:
        if not value.is_finite():
            raise ValueError(f"{value} is not a decimal number")
        self._decimals = EXACT.fma(value, Decimal(weight), self._decimals)
        self._has_decimals = True

    def _add_float(self, value: float, weight: int) -> None:
        if math.isnan(value):
            self._nans += weight
        elif value == math.inf:
            self._positive += weight
        elif value == -math.inf:
            self._negative += weight
        else:
            self._units += float_units(value) * weight
        self._has_floats = True

    def merge(self, other: Total) -> None:
        self.count += other.count
        self._whole += other._whole
        self._decimals = EXACT.add(self._decimals, other._decimals)
        self._units += other._units
        self._nans += other._nans
        self._positive += other._positive
        self._negative += other._negative
        self._has_decimals |= other._has_decimals
        self._has_floats |= other._has_floats

    def is_nothing(self) -> bool:
        """Whether everything that was added has been retracted."""
        specials = (self._nans, self._positive, self._negative)
        return not (self.count or self._whole or self._decimals or self._units or any(specials))

    @property
    def value(self) -> Number:
        """The sum. Integers mixed with doubles or decimals are added exactly."""
        if self._has_floats and self._has_decimals:
            raise TypeError("decimals and doubles have no exact sum in either type")
        if self._has_floats:
            return self._float()
        if self._has_decimals:
            return EXACT.add(self._decimals, Decimal(self._whole))
        return self._whole

    def _float(self) -> float:
        if self._nans > 0 or (self._positive > 0 and self._negative > 0):
            return math.nan
        if self._positive > 0 or self._negative > 0:
            return math.inf if self._positive > 0 else -math.inf
        return float_of_units(self._units + float_units(1.0) * self._whole)


def scale_of(value: Decimal) -> int:
    """The number of digits after the decimal point."""
    return max(0, -int(value.as_tuple().exponent))


def unscaled(value: Decimal, scale: int) -> int:
    """The unscaled value in a column of this scale; digits beyond the scale would be a bug and trap."""
    return int(EXACT.to_integral_exact(EXACT.scaleb(value, scale)))
