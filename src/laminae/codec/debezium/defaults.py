"""Defaults in the schemas of Debezium events, as column defaults: a default is encoded like a value of its type.

When a table gains a column with a default, existing rows have it although no event is sent for them. Defaults that
cannot be converted are left out.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laminae.codec.value_encodings import rule_of
from laminae.errors import InvalidDefault
from laminae.schema.column import DEFAULT, INITIAL_DEFAULT
from laminae.schema.defaults import encode_default

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.schema.avro.nodes import JsonValue

    Bytes = Callable[[str], bytes]

EPOCH = datetime(1970, 1, 1)
EXACT = Context(prec=80)
BOTH = (DEFAULT, INITIAL_DEFAULT)
MICROS = {"millis": 1000, "micros": 1, "nanos": 0.001}


def with_sent_default(field: pa.Field, value: JsonValue, to_bytes: Bytes) -> pa.Field:
    """The column with this default; `to_bytes` decodes the text that bytes are written as."""
    if value is None:
        return field
    try:
        default = encode_default(_value(field, value, to_bytes), field.type, field.name)
    except (ValueError, TypeError, OverflowError, ArithmeticError, InvalidDefault):
        return field
    return field.with_metadata({**(field.metadata or {}), DEFAULT: default.encode()})


def without_defaults(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_without(field) for field in schema], metadata=schema.metadata)


def _without(field: pa.Field) -> pa.Field:
    return field.with_metadata({name: text for name, text in (field.metadata or {}).items() if name not in BOTH})


# Values of every type pass through here, hence Any; `encode_default` checks them.
def _value(field: pa.Field, value: Any, to_bytes: Bytes) -> Any:
    rule, kind = rule_of(field), field.type
    if rule is None:
        return to_bytes(value) if pa.types.is_binary(kind) else value
    name, scale = rule
    if name == "days":
        return date(1970, 1, 1) + timedelta(days=value)
    if name == "decimal":
        number = Decimal(int.from_bytes(to_bytes(value), "big", signed=True)).scaleb(-scale, EXACT)
        return f"{number:f}" if pa.types.is_string(kind) else number
    if name in MICROS or name.removeprefix("time_") in MICROS:
        at = EPOCH + timedelta(microseconds=round(value * MICROS[name.removeprefix("time_")]))
        return at.time() if pa.types.is_time(kind) else at.replace(tzinfo=UTC) if kind.tz is not None else at
    if name == "zoned":
        return datetime.fromisoformat(value).astimezone(UTC)
    if name == "iso":
        temporal_type = date if pa.types.is_date(kind) else time if pa.types.is_time(kind) else datetime
        return temporal_type.fromisoformat(value.removesuffix("Z"))
    return float(value) if name == "number" else value
