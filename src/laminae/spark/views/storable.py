"""Checks that the columns of a view have types that changelogs and operator state can store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.errors import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

_INTERVALS = (spark.YearMonthIntervalType, spark.CalendarIntervalType)


def refuse_unstorable(view: str, fields: Iterable[spark.StructField]) -> None:
    """Raise `QueryFailed` for the first column whose type cannot be stored, with its name and a remedy."""
    for field in fields:
        problem = _problem(field.dataType, is_inner=False)
        if problem is not None:
            kind = field.dataType.simpleString()
            raise QueryFailed(problem=f"column {field.name} of view {view} has the type {kind}: {problem}")


def _problem(kind: spark.DataType, is_inner: bool) -> str | None:
    if isinstance(kind, spark.NullType):
        return "a part of it has no type, use CAST, for example CAST(array() AS ARRAY<INT>)" if is_inner else None
    if isinstance(kind, _INTERVALS):
        return "such an interval cannot be stored, use CAST (to INT months, or to a day-time interval)"
    if isinstance(kind, spark.StructType):
        if not kind.fields:
            return "a struct without fields cannot be stored, omit it"
        return next(filter(None, (_problem(field.dataType, True) for field in kind.fields)), None)
    if isinstance(kind, spark.ArrayType):
        return _problem(kind.elementType, True)
    if isinstance(kind, spark.MapType):
        return _problem(kind.keyType, True) or _problem(kind.valueType, True)
    return None
