"""The schema that Kafka Connect writes next to a payload, as columns: those of the row inside the Debezium envelope.

One table holds the semantic type names of Debezium and Connect. For unnamed types, the plain type decides.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.avro.type_table import INSTANT, LOCAL, MAX_PRECISION, TIME
from laminae.codec.debezium.defaults import with_sent_default
from laminae.codec.value_encodings import with_rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.schema.avro.nodes import JsonValue

PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
SEMANTIC: dict[str, tuple[str, pa.DataType]] = {
    "org.apache.kafka.connect.data.Date": ("days", pa.date32()),
    "org.apache.kafka.connect.data.Time": ("time_millis", TIME),
    "org.apache.kafka.connect.data.Timestamp": ("millis", LOCAL),
    "io.debezium.time.Date": ("days", pa.date32()),
    "io.debezium.time.Time": ("time_millis", TIME),
    "io.debezium.time.MicroTime": ("time_micros", TIME),
    "io.debezium.time.NanoTime": ("time_nanos", TIME),
    "io.debezium.time.Timestamp": ("millis", LOCAL),
    "io.debezium.time.MicroTimestamp": ("micros", LOCAL),
    "io.debezium.time.NanoTimestamp": ("nanos", LOCAL),
    "io.debezium.time.ZonedTimestamp": ("zoned", INSTANT),
    "io.debezium.time.IsoDate": ("iso", pa.date32()),
    "io.debezium.time.IsoTime": ("iso", TIME),
    "io.debezium.time.IsoTimestamp": ("iso", LOCAL),
    # Every value has its own scale: text is the only column type that holds them all.
    "io.debezium.data.VariableScaleDecimal": ("variable_decimal", pa.string()),
}
"""By name: the rule of `value_encodings`, and a column type that holds every such value."""
DECIMAL = "org.apache.kafka.connect.data.Decimal"
SCALE, PRECISION = "scale", "connect.decimal.precision"


def event_columns(schema: JsonValue) -> pa.Schema | None:
    """The columns of the row in an envelope of this schema; None if the schema does not state them.

    Every column is nullable: a delete event may carry only its key.
    """
    for field in _fields(schema):
        if field.get("field") == "after" and _fields(field):
            return pa.schema([_column(inner) for inner in _fields(field)])
    return None


def semantic_field(name: str, plain: pa.DataType, semantic: JsonValue, parameters: JsonValue) -> pa.Field:
    """A column of a plain type, or of the semantic type if it has the name of one."""
    if semantic == DECIMAL:
        settings = parameters if isinstance(parameters, dict) else {}
        scale, digits = (_number(settings.get(key)) for key in (SCALE, PRECISION))
        precision = MAX_PRECISION if digits is None else min(digits, MAX_PRECISION)
        holds = scale is not None and 0 <= scale <= precision
        kind = pa.decimal128(precision, scale) if holds else pa.string()
        return with_rule(pa.field(name, kind), f"decimal:{scale or 0}")
    rule, kind = SEMANTIC.get(str(semantic), (None, plain))
    return with_rule(pa.field(name, kind), rule)


def _column(field: Mapping[str, JsonValue]) -> pa.Field:
    name = str(field.get("field", "element"))
    column = semantic_field(name, _plain(field), field.get("name"), field.get("parameters"))
    # JSON numbers cannot represent NaN and the infinities: they are strings there.
    column = with_rule(column, "number") if pa.types.is_floating(column.type) else column
    return with_sent_default(column, field.get("default"), b64decode)


def _plain(field: Mapping[str, JsonValue]) -> pa.DataType:
    kind = field.get("type")
    if kind == "struct":
        return pa.struct([_column(inner) for inner in _fields(field)])
    if kind == "array":
        return pa.list_(_inner(field.get("items"), "element"))
    if kind == "map" and _type_of(field.get("keys")) == "string":
        return pa.map_(pa.string(), _inner(field.get("values"), "value"))
    return PLAIN.get(str(kind), pa.string())


def _inner(schema: JsonValue, name: str) -> pa.Field:
    return _column({**schema, "field": name}) if isinstance(schema, dict) else pa.field(name, pa.string())


def _type_of(schema: JsonValue) -> JsonValue:
    return schema.get("type") if isinstance(schema, dict) else None


def _fields(schema: JsonValue | Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []


def _number(text: JsonValue) -> int | None:
    try:
        return int(str(text))
    except ValueError:
        return None
