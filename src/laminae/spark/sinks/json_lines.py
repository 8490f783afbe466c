"""Encode rows as JSON lines that a `files` source reads back: ISO 8601 times, base64 bytes, exact decimals."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


def lines(batch: pa.RecordBatch) -> Iterator[bytes]:
    rows = batch.to_pylist(maps_as_pydicts="strict")
    # orjson writes NaN and infinities as null. Replacing them is slow, so only batches that may contain one pay for it.
    if any(_may_be_non_finite(column) for column in batch.columns):
        rows = [_finite(row) for row in rows]
    return (orjson.dumps(row, default=_rendered, option=_OPTIONS) for row in rows)


def _may_be_non_finite(column: pa.Array) -> bool:
    if pa.types.is_floating(column.type):
        return bool(pc.any(pc.invert(pc.is_finite(column))).as_py())
    return bool(pa.types.is_nested(column.type))


def _finite(value: object) -> object:
    """Replace non-finite numbers by the strings that Spark's JSON reader and writer use for them."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list():
            return [_finite(inner) for inner in value]
    return value


def _rendered(value: object) -> object:
    match value:
        case Decimal():
            return orjson.Fragment(str(value))
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return value.isoformat()
    raise TypeError(f"a {type(value).__name__} has no JSON form")
