"""Machine-readable output: JSON with times as ISO text, bytes as base64 and decimals as text."""

from __future__ import annotations

import base64
import json
import math
import sys
from contextlib import contextmanager, redirect_stdout
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from laminae.api.python_values import python_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """Rows by column name; a duplicate name gets its column number as a suffix."""
    names = [
        name if name not in table.column_names[:i] else f"{name}_{i + 1}" for i, name in enumerate(table.column_names)
    ]
    return [dict(zip(names, row, strict=True)) for row in python_rows(table)]


@contextmanager
def answer_alone(is_json: bool) -> Iterator[None]:
    """Reserve standard output for the JSON that follows: output of a console sink goes to standard error meanwhile."""
    if not is_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def as_json(value: object) -> str:
    return json.dumps(_finite(value), default=_plain, ensure_ascii=False, indent=2, allow_nan=False)


def as_json_line(value: object) -> str:
    return json.dumps(_finite(value), default=_plain, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    """JSON has no NaN and no infinity: they become text."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value


def _plain(value: object) -> object:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no JSON form")
