"""Build the Iceberg row filter that matches a set of keys. NULL equals NULL and NaN equals NaN."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression


def key_filter(keys: pa.Table) -> BooleanExpression:
    """Keys with a common prefix are grouped, so that a thousand keys do not need a thousand comparisons."""
    rows = sorted(zip(*(column.to_pylist() for column in keys.columns), strict=True), key=_in_order)
    return _any_of(keys.column_names, rows)


def _any_of(names: list[str], rows: list[tuple[object, ...]]) -> BooleanExpression:
    expressions = _expressions()
    first, rest = names[0], names[1:]
    parts: list[BooleanExpression] = []
    if rest:
        for _, group in groupby(rows, key=lambda row: _kind(row[0])):
            group_rows = list(group)
            parts.append(expressions.And(_is(first, group_rows[0][0]), _any_of(rest, [row[1:] for row in group_rows])))
    else:
        values = {_kind(row[0]): row[0] for row in rows}
        plain = [value for (special, _), value in values.items() if not special]
        parts += [expressions.In(first, plain)] if plain else []
        parts += [_is(first, value) for (special, _), value in values.items() if special]
    if len(parts) > 1:
        return expressions.Or(*parts)  # type: ignore[no-any-return]  # see `_expressions`
    return parts[0] if parts else expressions.AlwaysFalse()


def _is(name: str, value: object) -> BooleanExpression:
    expressions = _expressions()
    special, _ = _kind(value)
    if not special:
        return expressions.EqualTo(name, value)  # type: ignore[no-any-return]  # see `_expressions`
    return expressions.IsNull(name) if value is None else expressions.IsNaN(name)  # type: ignore[no-any-return]  # as above


def _kind(value: object) -> tuple[int, object]:
    """A sort key that is equal for equal values; NaN and NULL sort after all other values."""
    if value is None:
        return 2, 0
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _in_order(row: tuple[object, ...]) -> tuple[tuple[int, object], ...]:
    return tuple(map(_kind, row))


def _expressions() -> Any:
    """pyiceberg's expressions, untyped: pydantic generates their constructors, which type checkers cannot see."""
    from pyiceberg import expressions

    return expressions
