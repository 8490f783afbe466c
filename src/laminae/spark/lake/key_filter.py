"""Which rows of an Iceberg table have one of these keys, as an expression. NULL and NaN are values like others."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression


def key_filter(keys: pa.Table) -> BooleanExpression:
    """Keys that begin alike are told together: a thousand of them need not be a thousand comparisons."""
    names = keys.column_names
    rows = sorted(zip(*(column.to_pylist() for column in keys.columns), strict=True), key=_in_order)
    return _any_of(names, rows)


def _any_of(names: list[str], rows: list[tuple[object, ...]]) -> BooleanExpression:
    from pyiceberg.expressions import AlwaysFalse, And, In, Or

    first, rest = names[0], names[1:]
    if rest:
        groups = [(key, list(found)) for key, found in groupby(rows, key=lambda row: _kind(row[0]))]
        parts: list[BooleanExpression] = [
            And(_is(first, found[0][0]), _any_of(rest, [row[1:] for row in found])) for _, found in groups
        ]
    else:
        values = [row[0] for row in rows]
        plain = [value for value in values if _kind(value)[0] == 0]
        parts = [In(first, plain)] if plain else []  # type: ignore[arg-type]  # whatever a column can hold
        parts += [_is(first, value) for value in {_kind(v): v for v in values if _kind(v)[0]}.values()]
    if len(parts) < 2:
        return parts[0] if parts else AlwaysFalse()
    return Or(*parts)


def _is(name: str, value: object) -> BooleanExpression:
    from pyiceberg.expressions import EqualTo, IsNaN, IsNull

    if value is None:
        return IsNull(name)
    if isinstance(value, float) and math.isnan(value):
        return IsNaN(name)
    return EqualTo(name, value)  # type: ignore[arg-type]  # whatever a column can hold


def _kind(value: object) -> tuple[int, object]:
    """Equal for equal values, and in an order: what is no plain value comes behind all that are."""
    if value is None:
        return 2, 0
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _in_order(row: tuple[object, ...]) -> tuple[tuple[int, object], ...]:
    return tuple(map(_kind, row))
