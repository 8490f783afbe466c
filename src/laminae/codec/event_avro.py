"""Debezium's envelope as an Avro schema: the columns of the row inside it, with the rules of their semantic types.

Kafka Connect's converters write the name of a semantic type as `connect.name`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.avro_forms import MAX_PRECISION, members
from laminae.codec.avro_types import columns_of_record
from laminae.codec.connect_schema import DECIMAL, SEMANTIC, semantic_field
from laminae.codec.sent_defaults import with_sent_default
from laminae.codec.sent_values import with_rule
from laminae.errors import NoColumnForm
from laminae.schema.avro import AvroArray, AvroMap, AvroRecord, parse_avro
from laminae.schema.avro.nodes import AvroUnion
from laminae.schema.nesting import container, inner_fields

if TYPE_CHECKING:
    from laminae.schema.avro import AvroSchema, AvroType, JsonValue
    from laminae.schema.avro.nodes import AvroDefinite

BEFORE, AFTER, OP = "before", "after", "op"
NAME, PARAMETERS, LOGICAL = "connect.name", "connect.parameters", "logicalType"


def event_text(text: str) -> str:
    """The same schema with semantic types told by their names alone: logical types stand for some of them only.

    A converter that does not know the digits of a decimal says 64, which no column has.
    """
    return json.dumps(_plain(json.loads(text)), separators=(",", ":"))


def event_columns_of_avro(text: str) -> pa.Schema:
    """The columns of the row in an envelope; what is no envelope, or cannot be a column, is refused."""
    schema = parse_avro(text)
    record = row_record(schema)
    bare = replace(record, fields=tuple(replace(f, has_default=False, default=None) for f in record.fields))
    found = columns_of_record(schema, bare)
    ruled = [_ruled(column, field.type, schema) for column, field in zip(found, record.fields, strict=True)]
    given = [field.default if field.has_default else None for field in record.fields]
    return pa.schema([with_sent_default(c, default, _code_points) for c, default in zip(ruled, given, strict=True)])


def row_record(schema: AvroSchema) -> AvroRecord:
    """The record of the row after a change."""
    root = schema.root
    fields = {field.name: field for field in root.fields} if isinstance(root, AvroRecord) else {}
    found = _real(fields[AFTER].type, schema) if AFTER in fields and OP in fields else None
    if not isinstance(found, AvroRecord):
        raise NoColumnForm(path="the root", problem="it is no envelope of Debezium's, which has op and a record after")
    return found


def has_path(schema: AvroSchema, path: str) -> bool:
    """Whether an envelope has this field, such as source.lsn."""
    node: AvroDefinite = schema.root
    for name in path.split("."):
        fields = {field.name: field.type for field in node.fields} if isinstance(node, AvroRecord) else {}
        if name not in fields:
            return False
        node = _real(fields[name], schema)
    return True


def _ruled(column: pa.Field, node: AvroType, schema: AvroSchema) -> pa.Field:
    found = _real(node, schema)
    props = found.props if not isinstance(found, AvroUnion) else {}
    if props.get(NAME) in SEMANTIC or (props.get(NAME) == DECIMAL and pa.types.is_binary(column.type)):
        made = semantic_field(column.name, column.type, props[NAME], props.get(PARAMETERS))
        return made.with_metadata({**(column.metadata or {}), **(made.metadata or {})})
    kind = column.type
    if isinstance(found, AvroArray):
        kind = container(kind, [_ruled(kind.value_field, found.items, schema)])
    elif isinstance(found, AvroMap):
        key, item = inner_fields(kind)
        kind = container(kind, [key, _ruled(item, found.values, schema)])
    return with_rule(column.with_nullable(True).with_type(kind), None)


def _code_points(text: str) -> bytes:
    return text.encode("latin-1")


def _real(node: AvroType, schema: AvroSchema) -> AvroDefinite:
    """The type itself where it may be null."""
    found = schema.resolve(node)
    if isinstance(found, AvroUnion):
        real = members(found.branches, schema)
        return real[0] if len(real) == 1 else found
    return found


def _plain(node: JsonValue) -> JsonValue:
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    precision = node.get("precision")
    is_beyond = isinstance(precision, int) and precision > MAX_PRECISION
    drops = node.get(NAME) in SEMANTIC or (node.get(LOGICAL) == "decimal" and is_beyond)
    return {name: _plain(value) for name, value in node.items() if not (drops and name == LOGICAL)}
