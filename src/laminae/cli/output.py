"""What a machine reads: JSON with times as ISO text, bytes as base64 and decimals as text."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


def as_json(value: object) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False, indent=2)


def _plain(value: object) -> object:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no JSON form")
