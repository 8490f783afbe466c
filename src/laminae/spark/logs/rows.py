"""Rows as a user has them (dicts, Arrow, pandas) to JSON documents, one for each row. No Spark here.

A value that JSON lacks has one rendering; one that has none (NaN, a set) is refused with its row and path.
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

from laminae.errors import InvalidRow

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "Iterable[Mapping[str, object]] | pa.Table | pa.RecordBatch | pd.DataFrame"

# What orjson writes as wanted without a look at the value.
_PLAIN = frozenset({str, int, bool, type(None), datetime, date, time, UUID})
_WRITTEN_INTEGERS = range(-(2**63), 2**64)


class _Unfit(Exception):
    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path, self.problem = path, problem


def documents(rows: Rows, source: str) -> list[bytes]:
    """Each row as one JSON document, or InvalidRow for the first that cannot be one."""
    found: list[bytes] = []
    for number, row in enumerate(_mappings(rows, source)):
        try:
            found.append(_document(row))
        except _Unfit as unfit:
            path = unfit.path or "the row itself"
            raise InvalidRow(row=number, source=source, path=path, problem=unfit.problem) from None
    return found


def _mappings(rows: Rows, source: str) -> Iterable[Mapping[str, object]]:
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _arrow_rows(rows, source)
    # Known by its shape, so that pandas is not loaded for those who have none.
    if hasattr(rows, "columns") and hasattr(rows, "to_numpy"):
        return _arrow_rows(pa.Table.from_pandas(rows, preserve_index=False), source)
    return [rows] if isinstance(rows, Mapping) else rows


def _arrow_rows(rows: pa.Table | pa.RecordBatch, source: str) -> list[Mapping[str, object]]:
    names = rows.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRow(row=0, source=source, path=twice, problem="two columns have this name")
    found: list[Mapping[str, object]] = rows.to_pylist(maps_as_pydicts="strict")
    return found


def _document(row: object) -> bytes:
    if not isinstance(row, Mapping):
        raise _Unfit("", f"it is a {type(row).__name__}, not a mapping of names to values")
    try:
        if type(row) is dict and _is_plain(row):
            return orjson.dumps(row)
    except TypeError:
        # A wide integer, a key that is not text, a lone surrogate: the walk renders it or says where it is.
        pass
    return orjson.dumps(_rendered(row, ""))


def _is_plain(value: dict[str, object] | list[object] | tuple[object, ...]) -> bool:
    for inner in value.values() if type(value) is dict else value:
        kind = type(inner)
        if kind in _PLAIN:
            continue
        if kind is float:
            # orjson writes NaN and the infinities as null without a word.
            if not math.isfinite(inner):  # type: ignore[arg-type]  # its type was just looked at
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
            # A fragment keeps every digit, where a float would not.
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
        raise _Unfit(path, f"{value} is not a number that JSON has")
    return float(value) if isinstance(value, float) else value


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Unfit(path, f"the text cannot be written as UTF-8: {error.reason}") from None
    return str(value)


def _instant(value: datetime | date | time, path: str) -> str:
    # pandas' NaT is a datetime that differs from itself.
    if value != value:
        raise _Unfit(path, f"{value} is no point in time")
    return value.isoformat()


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise _Unfit(path, f"the key {key!r} is a {type(key).__name__}, not text")
    return _text(key, path)
