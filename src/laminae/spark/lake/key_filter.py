"""Which rows of an Iceberg table have one of these keys, as an expression. NULL and NaN are values like others."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression


def key_filter(keys: pa.Table) -> BooleanExpression:
    """Keys that begin alike are told together: a thousand of them need not be a thousand comparisons."""
    rows = sorted(zip(*(column.to_pylist() for column in keys.columns), strict=True), key=_in_order)
    return _any_of(keys.column_names, rows)


def _any_of(names: list[str], rows: list[tuple[object, ...]]) -> BooleanExpression:
    made = _expressions()
    first, rest = names[0], names[1:]
    parts: list[BooleanExpression] = []
    if rest:
        for _, group in groupby(rows, key=lambda row: _kind(row[0])):
            found = list(group)
            parts.append(made.And(_is(first, found[0][0]), _any_of(rest, [row[1:] for row in found])))
    else:
        values = {_kind(row[0]): row[0] for row in rows}
        plain = [value for (special, _), value in values.items() if not special]
        parts += [made.In(first, plain)] if plain else []
        parts += [_is(first, value) for (special, _), value in values.items() if special]
    if len(parts) > 1:
        return made.Or(*parts)  # type: ignore[no-any-return]  # see `_expressions`
    return parts[0] if parts else made.AlwaysFalse()


def _is(name: str, value: object) -> BooleanExpression:
    made = _expressions()
    special, _ = _kind(value)
    if not special:
        return made.EqualTo(name, value)  # type: ignore[no-any-return]  # see `_expressions`
    return made.IsNull(name) if value is None else made.IsNaN(name)  # type: ignore[no-any-return]  # as above


def _kind(value: object) -> tuple[int, object]:
    """Equal for equal values, and in an order: what is no plain value comes behind all that are."""
    if value is None:
        return 2, 0
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _in_order(row: tuple[object, ...]) -> tuple[tuple[int, object], ...]:
    return tuple(map(_kind, row))


def _expressions() -> Any:
    """pyiceberg's. Their constructors are made by pydantic, and no type checker sees what they take."""
    from pyiceberg import expressions

    return expressions
