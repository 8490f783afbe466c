"""Encode values and whole columns as JSON text without losing values that JSON has no representation for.

Decimals are strings of plain digits, timestamps and dates ISO 8601, bytes base64, NaN and infinities the strings that
Spark reads back as such (orjson would write null for them).
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_PLAIN = frozenset({str, int, bool, type(None)})
_LONG_NUMBER = re.compile(rb"[0-9]{20}|(?=[0-9.]{17})[0-9]+[.]")
_TEXT = pa.large_string()
_MUST_BE_ESCAPED = r'[\x00-\x1f"\\]'


def is_plain_row(row: object) -> bool:
    """Whether orjson encodes the row without loss. A fast check that may return False for such a row, too."""
    if type(row) is not dict:
        return False
    for value in row.values():
        kind = type(value)
        if kind not in _PLAIN and not (kind is float and math.isfinite(value)):
            return False
    return True


def plain(value: object) -> Json | orjson.Fragment:
    """Convert the value to types that JSON has."""
    match value:
        case None | bool() | str() | orjson.Fragment():
            return value
        case float() | np.floating():
            return float(value) if math.isfinite(value) else _spoken(float(value))
        case int() | np.integer():
            return int(value)
        case Mapping():
            return {str(name): plain(inner) for name, inner in value.items()}  # type: ignore[misc]  # no fragment inside
        case list() | tuple():
            return [plain(inner) for inner in value]  # type: ignore[misc]  # no fragment inside
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray():
            return base64.b64encode(value).decode("ascii")
        case datetime():
            return _instant(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value // timedelta(microseconds=1)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def exact_json(text: str | bytes) -> Json | Decimal:
    """Parse JSON. A number with more digits than 64 bits or a double can hold becomes an integer or a Decimal.

    orjson would round it silently, so texts with such a run of digits are parsed by the standard library.
    """
    value: Json | Decimal = orjson.loads(text)
    as_bytes = text.encode() if isinstance(text, str) else text
    if _LONG_NUMBER.search(as_bytes) is None:
        return value
    exact: Json | Decimal = json.loads(text, parse_float=_exact_number)
    return exact


def _exact_number(text: str) -> float | Decimal:
    exact = Decimal(text)
    return float(text) if Decimal(repr(float(text))) == exact else exact


def _spoken(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def row_texts(table: pa.Table, names: Sequence[str]) -> pa.Array:
    """One JSON object per row, with these columns; NULL is written as null."""
    parts: list[pa.Array | str] = []
    for i, name in enumerate(names):
        parts.append(("{" if i == 0 else ",") + orjson.dumps(name).decode() + ":")
        parts += _parts(table.column(name).combine_chunks())
    if not parts:
        return pa.array(["{}"] * table.num_rows, _TEXT)
    return joined(*parts, "}", null="null")


def value_texts(array: pa.Array) -> pa.Array:
    """Each value of a column as JSON; NULL stays NULL."""
    return _texts(array)


def joined(*parts: pa.Array | str, null: str) -> pa.Array:
    """Concatenate texts row by row; a single string is used in every row, and `null` replaces NULLs."""
    texts = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    empty = pa.scalar("", _TEXT)
    return pc.binary_join_element_wise(*texts, empty, null_handling="replace", null_replacement=null)


def _parts(array: pa.Array) -> list[pa.Array | str]:
    """The JSON texts of a column, NULL where the value is; strings that need no escaping are not copied for quotes."""
    if _is_text(array.type) and not array.null_count and not _has_special_bytes(text := array.cast(_TEXT)):
        return ['"', text, '"']
    return [_texts(array)]


def _texts(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return array.cast(_TEXT)
    if pa.types.is_floating(kind):
        return _float_texts(array)
    if _is_text(kind):
        return _string_texts(array.cast(_TEXT))
    if pa.types.is_timestamp(kind):
        instants = array.cast(pa.timestamp(kind.unit, None if kind.tz is None else "UTC"))
        return _quoted(pc.replace_substring(instants.cast(_TEXT), " ", "T"))
    if pa.types.is_date(kind):
        return _quoted(array.cast(_TEXT))
    return _one_by_one(array)


def _float_texts(array: pa.Array) -> pa.Array:
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    # Numbers contain no comma, so the output of one call for all of them can be split again.
    texts = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY).decode()[1:-1].split(",") if len(values) else []
    for place in np.flatnonzero(~np.isfinite(values)).tolist():
        texts[place] = f'"{_spoken(float(values[place]))}"'
    return pc.if_else(array.is_valid(), pa.array(texts, _TEXT), pa.scalar(None, _TEXT))


def _string_texts(array: pa.Array) -> pa.Array:
    quoted = _quoted(array)
    if not _has_special_bytes(array):
        return quoted
    special = np.flatnonzero(np.asarray(pc.match_substring_regex(array, _MUST_BE_ESCAPED).fill_null(False)))
    escaped = [orjson.dumps(text).decode() for text in array.take(pa.array(special)).to_pylist()]
    mask = np.zeros(len(array), dtype=np.bool_)
    mask[special] = True
    return pc.replace_with_mask(quoted, pa.array(mask), pa.array(escaped, _TEXT))


def _has_special_bytes(array: pa.Array) -> bool:
    """Check all bytes at once, at a tenth of the cost of a regular expression.

    False positives are possible, because the buffer may contain bytes of values outside the array's slice.
    """
    data = array.buffers()[2]
    if data is None:
        return False
    byte_values = np.frombuffer(data, dtype=np.uint8)
    return bool(((byte_values < 0x20) | (byte_values == 0x22) | (byte_values == 0x5C)).any())


def _one_by_one(array: pa.Array) -> pa.Array:
    """Encode decimals, bytes and nested values in Python."""
    texts = [
        None if value is None else orjson.dumps(plain(_as_mapping(value, array.type))).decode()
        for value in array.to_pylist()
    ]
    return pa.array(texts, _TEXT)


def _as_mapping(value: object, kind: pa.DataType) -> object:
    """Convert maps, which Arrow returns as lists of pairs, to dictionaries for JSON objects."""
    match value:
        case list() if pa.types.is_map(kind):
            return {_name(key): _as_mapping(inner, kind.item_type) for key, inner in value}
        case list():
            return [_as_mapping(inner, kind.value_type) for inner in value]
        case dict():
            return {name: _as_mapping(inner, kind.field(name).type) for name, inner in value.items()}
    return value


def _name(key: object) -> str:
    return key if isinstance(key, str) else str(plain(key))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _quoted(texts: pa.Array) -> pa.Array:
    """Add quotation marks; NULL stays NULL."""
    mark = pa.scalar('"', _TEXT)
    return pc.binary_join_element_wise(mark, texts, mark, pa.scalar("", _TEXT))
