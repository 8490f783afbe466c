"""Converts defaults of Avro fields to column values and back: their JSON encodings differ.

Avro encodes bytes as text of their code points, and logical types as the underlying number or bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from laminae.codec.avro.type_table import DURATION, DecimalForm, form_of, member_name, members, promoted
from laminae.schema.avro import AvroArray, AvroEnum, AvroFixed, AvroMap, AvroPrimitive, AvroRecord
from laminae.schema.avro.defaults import fits
from laminae.schema.nesting import is_list

if TYPE_CHECKING:
    from laminae.schema.avro import AvroSchema, AvroType, JsonValue

# Values of every type pass through here, hence Any; the schema parser has checked their kind.
Convert: TypeAlias = Callable[[Any], Any]

EPOCH = datetime(1970, 1, 1)
DAY = timedelta(days=1)
MICROSECOND, MILLISECOND = timedelta(microseconds=1), timedelta(milliseconds=1)
EXACT = Context(prec=80)
NAMES = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _time(unit: timedelta) -> Convert:
    def convert(count: int) -> time:
        if not timedelta(0) <= count * unit < DAY:
            raise ValueError("a time of day lies within one day")
        return (EPOCH + count * unit).time()

    return convert


def _local(unit: timedelta) -> Convert:
    return lambda count: EPOCH + count * unit


def _instant(unit: timedelta) -> Convert:
    return lambda count: (EPOCH + count * unit).replace(tzinfo=UTC)


def _duration(text: str) -> dict[str, int]:
    return dict(zip((field.name for field in DURATION), struct.unpack("<III", _bytes(text)), strict=True))


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


# By type and logical type; other values are the same in both. Fixed and decimal are handled separately.
_READ: dict[tuple[str, str | None], Convert] = {
    ("int", "date"): lambda days: EPOCH.date() + timedelta(days=days),
    ("int", "time-millis"): _time(MILLISECOND),
    ("long", "time-micros"): _time(MICROSECOND),
    ("long", "timestamp-millis"): _instant(MILLISECOND),
    ("long", "timestamp-micros"): _instant(MICROSECOND),
    ("long", "local-timestamp-millis"): _local(MILLISECOND),
    ("long", "local-timestamp-micros"): _local(MICROSECOND),
    ("float", None): float,
    ("double", None): float,
    ("bytes", None): _bytes,
    ("fixed", None): _bytes,
    ("fixed", "uuid"): _bytes,
    ("fixed", "duration"): _duration,
}


def column_default(value: JsonValue, node: AvroType, schema: AvroSchema) -> Any:
    """The default of an Avro type as the Python value of its column; raises `ValueError` or `OverflowError`."""
    resolved = schema.resolve(node)
    if isinstance(resolved, AvroPrimitive | AvroEnum | AvroFixed):
        return _leaf(value, resolved)
    if isinstance(resolved, AvroArray):
        return [column_default(item, resolved.items, schema) for item in _items(value)]
    if isinstance(resolved, AvroMap):
        return {key: column_default(item, resolved.values, schema) for key, item in _entries(value).items()}
    if isinstance(resolved, AvroRecord):
        entries = _entries(value)
        return {
            field.name: column_default(entries.get(field.name, field.default), field.type, schema)
            for field in resolved.fields
        }
    return _branch(value, resolved.branches, schema)


def _branch(value: JsonValue, branches: tuple[AvroType, ...], schema: AvroSchema) -> Any:
    """A default belongs to the first branch that it fits, as in the Java implementation."""
    if value is None:
        return None
    real = members(branches, schema)
    if (wider := promoted(real)) is not None:
        return float(value) if pa.types.is_floating(wider) else value  # type: ignore[arg-type]  # a number, or it fits none
    chosen = next((branch for branch in real if fits(value, branch, schema.names, frozenset())), None)
    if chosen is None:
        raise ValueError("it fits no type of the union")
    default = column_default(value, chosen, schema)
    return default if len(real) == 1 else {member_name(real.index(chosen)): default}


def _leaf(value: Any, node: AvroPrimitive | AvroEnum | AvroFixed) -> Any:
    if isinstance(node, AvroFixed) and len(value) != node.size:
        raise ValueError(f"{node.name} has {node.size} bytes")
    if isinstance(node, AvroEnum) and value not in node.symbols:
        raise ValueError(f"{node.name} has no such symbol")
    form = form_of(node)
    if isinstance(form, DecimalForm):
        return Decimal(int.from_bytes(_bytes(value), signed=True)).scaleb(-form.arrow.scale, EXACT)
    convert = _READ.get((form.type, form.logical))
    return value if convert is None else convert(value)


def _items(value: Any) -> list[JsonValue]:
    return list(value)


def _entries(value: Any) -> dict[str, JsonValue]:
    return dict(value)


def _float(value: float, _: pa.DataType) -> JsonValue:
    return "NaN" if math.isnan(value) else NAMES.get(value, value)


def _decimal(value: Decimal, arrow: pa.DataType) -> JsonValue:
    unscaled = int(value.scaleb(arrow.scale, EXACT))
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(size, signed=True).decode("latin-1")


def _days(value: date, _: pa.DataType) -> JsonValue:
    return (value - EPOCH.date()).days


def _day_micros(value: time, _: pa.DataType) -> JsonValue:
    return (datetime.combine(EPOCH.date(), value) - EPOCH) // MICROSECOND


def _micros(value: datetime, _: pa.DataType) -> JsonValue:
    return (value.replace(tzinfo=None) - EPOCH) // MICROSECOND


def _struct(value: dict[str, Any], arrow: pa.DataType) -> JsonValue:
    return {field.name: avro_default(value[field.name], field.type) for field in arrow}


def _list(value: list[Any], arrow: pa.DataType) -> JsonValue:
    return [avro_default(item, arrow.value_type) for item in value]


def _map(value: list[tuple[str, Any]], arrow: pa.DataType) -> JsonValue:
    return {key: avro_default(item, arrow.item_type) for key, item in value}


# The first matching test decides; values of other types are the same in both.
_WRITTEN: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], JsonValue]], ...] = (
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_binary, lambda value, _: value.decode("latin-1")),
    (pa.types.is_date, _days),
    (pa.types.is_time, _day_micros),
    (pa.types.is_timestamp, _micros),
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (is_list, _list),
)


def avro_default(value: Any, arrow: pa.DataType) -> JsonValue:
    """A Python value of a column as the default of its Avro field."""
    if value is None:
        return None
    convert = next((convert for test, convert in _WRITTEN if test(arrow)), None)
    return value if convert is None else convert(value, arrow)


def holds_non_finite(value: Any) -> bool:
    """Whether the value is or contains NaN or an infinity, which JSON numbers cannot represent."""
    if isinstance(value, dict):
        return any(map(holds_non_finite, value.values()))
    if isinstance(value, list | tuple):
        return any(map(holds_non_finite, value))
    return isinstance(value, float) and not math.isfinite(value)
