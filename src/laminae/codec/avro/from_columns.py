"""From columns to an Avro schema, for sinks: the reverse of `to_columns`.

A nullable column without a default gets the default null, so that readers with the new schema can read older records.
Nested records are named after their path. Columns without an Avro type are refused by name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from laminae.codec.avro.defaults import avro_default, holds_non_finite
from laminae.codec.avro.to_columns import ELEMENT_ID, FIELD_ID, KEY_ID, VALUE_ID
from laminae.codec.avro.type_table import INSTANT, LOCAL, TIME
from laminae.errors import NoAvroForm
from laminae.schema.avro.names import is_name
from laminae.schema.column import columns_of, dotted
from laminae.schema.defaults import default_scalar
from laminae.schema.nesting import is_list
from laminae.schema.types import VARIANT, sql_type

if TYPE_CHECKING:
    from laminae.schema.avro import JsonValue
    from laminae.schema.column import Column, Columns, Path

Json: TypeAlias = "dict[str, JsonValue]"


def _logical(kind: str, logical: str) -> Json:
    return {"type": kind, "logicalType": logical}


# Avro has no integer type narrower than int, so narrow integers are widened.
WRITTEN: dict[pa.DataType, JsonValue] = {
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): _logical("int", "date"),
    TIME: _logical("long", "time-micros"),
    INSTANT: _logical("long", "timestamp-micros"),
    LOCAL: _logical("long", "local-timestamp-micros"),
}


def avro_of_columns(schema: pa.Schema, name: str) -> str:
    """The record schema with this full name as JSON text. The same columns and name give the same text."""
    if not all(map(is_name, name.split("."))):
        raise NoAvroForm(
            path=name, type="record", problem="its name contains characters other than letters, digits and _"
        )
    record = _record(columns_of(schema), name, (), name)
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _record(columns: Columns, root: str, path: Path, name: str) -> Json:
    return {"type": "record", "name": name, "fields": [_field(node, root, (*path, node.name)) for node in columns]}


def _field(node: Column, root: str, path: Path) -> Json:
    if not is_name(node.name):
        raise _refusal(node, path, "its name contains characters other than letters, digits and _")
    default = _default(node, path)
    kind = _type(node, root, path)
    field: Json = {"name": node.name, "type": kind}
    if node.nullable and kind != "null":
        # The default's type comes first: readers before Avro 1.12 accept no other order.
        field["type"] = ["null", kind] if default is None else [kind, "null"]
    if node.nullable or default is not None:
        field["default"] = default
    if node.aliases:
        field["aliases"] = list(node.aliases)
    return {**field, **_id(node, FIELD_ID)}


def _default(node: Column, path: Path) -> JsonValue:
    # The value that readers with the new schema use for records written before the column existed.
    if node.initial_default is None:
        return None
    value = default_scalar(node.initial_default, node.type, dotted(path)).as_py()
    # Java parses the text NaN only as the direct default of a float or double.
    is_plain = pa.types.is_floating(node.type) and not node.nullable
    if not is_plain and holds_non_finite(value):
        raise _refusal(node, path, "a default of NaN or infinity is possible only where the column itself is NOT NULL")
    return avro_default(value, node.type)


def _type(node: Column, root: str, path: Path) -> JsonValue:
    if pa.types.is_decimal128(node.type) and node.type.scale >= 0:
        return {**_logical("bytes", "decimal"), "precision": node.type.precision, "scale": node.type.scale}
    if pa.types.is_struct(node.type) and node.type != VARIANT:
        return _record(node.children, root, path, ".".join((root, *path)))
    if pa.types.is_map(node.type):
        key, value = node.children
        if not pa.types.is_string(key.type):
            raise _refusal(node, path, "the keys of Avro's maps are text")
        return {"type": "map", "values": _inner(value, root, path), **_id(key, KEY_ID), **_id(value, VALUE_ID)}
    if is_list(node.type):
        (element,) = node.children
        return {"type": "array", "items": _inner(element, root, path), **_id(element, ELEMENT_ID)}
    if node.type not in WRITTEN:
        raise _refusal(node, path, "Avro has no such type")
    return WRITTEN[node.type]


def _inner(node: Column, root: str, path: Path) -> JsonValue:
    kind = _type(node, root, (*path, node.name))
    return ["null", kind] if node.nullable and kind != "null" else kind


def _id(node: Column, name: str) -> Json:
    known = node.external_id
    return {name: int(known)} if known is not None and known.isdecimal() else {}


def _refusal(node: Column, path: Path, problem: str) -> NoAvroForm:
    return NoAvroForm(path=dotted(path), type=sql_type(node.type), problem=problem)
