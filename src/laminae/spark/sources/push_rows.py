"""Converts a user's rows (dicts, Arrow, pandas) to JSON documents, one per row. No Spark here.

A value of a type that JSON lacks has exactly one rendering; a value that has none (NaN, a set) is refused with its row
and path.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

import orjson
import pyarrow as pa

from laminae.errors import InvalidOption, InvalidRow

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "Iterable[Mapping[str, object]] | pa.Table | pa.RecordBatch | pd.DataFrame"

# Types that orjson writes as wanted, whatever the value.
_PLAIN = frozenset({str, int, bool, type(None), datetime, date, time, UUID})
_WRITTEN_INTEGERS = range(-(2**63), 2**64)
# A date outside of Python's calendar, text that is not UTF-8, a duplicate key in a map.
_NOT_CONVERTED = (OverflowError, ValueError, KeyError, pa.ArrowException)


class _Unfit(Exception):
    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path, self.problem = path, problem


def documents(rows: Rows, source: str, whole: frozenset[str] = frozenset()) -> list[bytes]:
    """Each row as one JSON document; InvalidRow for the first row that cannot be converted.

    `whole` are the integer columns: pandas turns them into floats if a value is missing.
    """
    encoded: list[bytes] = []
    for number, row in enumerate(_mappings(rows, source, whole)):
        try:
            encoded.append(_document(row))
        except _Unfit as unfit:
            path = unfit.path or "the row itself"
            raise InvalidRow(row=number, source=source, path=path, problem=unfit.problem) from None
    return encoded


def _mappings(rows: Rows, source: str, whole: frozenset[str]) -> Iterable[Mapping[str, object]]:
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _arrow_rows(rows, source, whole)
    # Recognised by its attributes, so that pandas is not imported for users who do not use it.
    if hasattr(rows, "columns") and hasattr(rows, "to_numpy"):
        return _frame_rows(rows, source, whole)
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        problem, advice = f"it is {type(rows).__name__}", "Pass dicts, an Arrow table or a pandas DataFrame."
        raise InvalidOption(option="rows", owner=f"insert into {source}", problem=problem, advice=advice)
    return [rows] if isinstance(rows, Mapping) else rows


def _frame_rows(frame: pd.DataFrame, source: str, whole: frozenset[str]) -> list[Mapping[str, object]]:
    names = [str(name) for name in frame.columns]
    _refuse_twins(names, source)
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
        # A column of mixed types has no Arrow type, but each of its values may have a JSON form.
        columns = [frame.iloc[:, index].astype(object) for index in range(len(names))]
        values = [column.where(column.notna(), None).tolist() for column in columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return _arrow_rows(table, source, whole)


def _arrow_rows(
    rows: pa.Table | pa.RecordBatch, source: str, whole: frozenset[str] = frozenset()
) -> list[Mapping[str, object]]:
    _refuse_twins(rows.schema.names, source)
    floats = [field.name for field in rows.schema if field.name in whole and pa.types.is_floating(field.type)]
    try:
        return _as_dicts(rows) if not floats else [_with_whole(row, floats) for row in _as_dicts(rows)]
    except _NOT_CONVERTED:
        for number in range(rows.num_rows):
            for name in rows.schema.names:
                _refuse_unconverted(rows.select([name]).slice(number, 1), number, name, source)
        raise


def _with_whole(row: Mapping[str, object], floats: list[str]) -> Mapping[str, object]:
    """The row with integral floats of these columns as integers; a fraction stays a float, and is refused later."""
    values = {name: row[name] for name in floats}
    return {**row, **{name: int(v) for name, v in values.items() if isinstance(v, float) and v.is_integer()}}


def _refuse_twins(names: list[str], source: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRow(row=0, source=source, path=twice, problem="two columns have this name")


def _refuse_unconverted(cell: pa.Table | pa.RecordBatch, row: int, name: str, source: str) -> None:
    try:
        _as_dicts(cell)
    except _NOT_CONVERTED as problem:
        words = problem.args[0] if isinstance(problem, KeyError) else problem
        raise InvalidRow(row=row, source=source, path=name, problem=str(words)) from None


def _as_dicts(rows: pa.Table | pa.RecordBatch) -> list[Mapping[str, object]]:
    dicts: list[Mapping[str, object]] = rows.to_pylist(maps_as_pydicts="strict")
    return dicts


def _document(row: object) -> bytes:
    if not isinstance(row, Mapping):
        raise _Unfit("", f"it is a {type(row).__name__}, not a mapping of names to values")
    try:
        if type(row) is dict and _is_plain(row):
            return orjson.dumps(row)
    except (TypeError, RecursionError):
        # A wide integer, a key that is not text, a lone surrogate: `_rendered` converts it or reports its path.
        pass
    try:
        return orjson.dumps(_rendered(row, ""))
    except RecursionError:
        raise _Unfit("", "it is nested too deeply, or contains itself") from None
    except TypeError as problem:
        raise _Unfit("", str(problem)) from None


def _is_plain(value: dict[str, object] | list[object] | tuple[object, ...]) -> bool:
    for inner in value.values() if type(value) is dict else value:
        kind = type(inner)
        if kind in _PLAIN:
            continue
        if kind is float:
            # orjson silently writes NaN and the infinities as null.
            if not math.isfinite(inner):  # type: ignore[arg-type]  # its type was just checked
                return False
        elif kind not in (dict, list, tuple) or not _is_plain(inner):  # type: ignore[arg-type]  # likewise
            return False
    return True


def _rendered(value: object, path: str) -> object:
    match value:
        case None | bool() | UUID():
            return value
        case str():
            return _text(value, path)
        case int():
            return value if value in _WRITTEN_INTEGERS else orjson.Fragment(str(value))
        case float():
            return _finite(value, path, math.isfinite(value))
        case Decimal():
            # A fragment keeps every digit; a float would not.
            return orjson.Fragment(str(_finite(value, path, value.is_finite())))
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case datetime() | date() | time():
            return _instant(value, path)
        case Mapping():
            return {_key(key, path): _rendered(inner, f"{path}.{key}" if path else key) for key, inner in value.items()}
        case list() | tuple():
            return [_rendered(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _rendered(value.tolist(), path)
    raise _Unfit(path, f"a {type(value).__name__} has no JSON form")


def _finite(value: float | Decimal, path: str, is_finite: bool) -> float | Decimal:
    if not is_finite:
        raise _Unfit(path, f"{value} cannot be represented in JSON")
    return float(value) if isinstance(value, float) else value


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Unfit(path, f"the text cannot be written as UTF-8: {error.reason}") from None
    return str(value)


def _instant(value: datetime | date | time, path: str) -> str:
    # pandas' NaT is a datetime that is not equal to itself.
    if value != value:
        raise _Unfit(path, f"{value} is not a point in time")
    return value.isoformat()


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise _Unfit(path, f"the key {key!r} is a {type(key).__name__}, not text")
    return _text(key, path)
