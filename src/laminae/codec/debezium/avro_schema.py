"""The Debezium envelope as an Avro schema: the columns of the row inside, with the encodings of semantic types.

Kafka Connect converters write the name of a semantic type as `connect.name`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.avro.to_columns import columns_of_record
from laminae.codec.avro.type_table import MAX_PRECISION, members
from laminae.codec.debezium.connect_schema import DECIMAL, SEMANTIC, semantic_field
from laminae.codec.debezium.defaults import with_sent_default
from laminae.codec.value_encodings import with_rule
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
    """The same schema with semantic types identified by name only: Avro logical types exist for only some of them.

    A converter that does not know the precision of a decimal writes 64, which no column supports.
    """
    return json.dumps(_plain(json.loads(text)), separators=(",", ":"))


def event_columns_of_avro(text: str) -> pa.Schema:
    """The columns of the row in an envelope. Raises for other schemas and for types that cannot be columns."""
    schema = parse_avro(text)
    record = row_record(schema)
    bare = replace(record, fields=tuple(replace(f, has_default=False, default=None) for f in record.fields))
    columns = columns_of_record(schema, bare)
    ruled = [_ruled(column, field.type, schema) for column, field in zip(columns, record.fields, strict=True)]
    defaults = [field.default if field.has_default else None for field in record.fields]
    return pa.schema([with_sent_default(c, default, _code_points) for c, default in zip(ruled, defaults, strict=True)])


def row_record(schema: AvroSchema) -> AvroRecord:
    """The record of the row after a change."""
    root = schema.root
    fields = {field.name: field for field in root.fields} if isinstance(root, AvroRecord) else {}
    record = _real(fields[AFTER].type, schema) if AFTER in fields and OP in fields else None
    if not isinstance(record, AvroRecord):
        raise NoColumnForm(path="the root", problem="it is not a Debezium envelope with op and a record named after")
    return record


def has_path(schema: AvroSchema, path: str) -> bool:
    """Whether an envelope has this field, for instance source.lsn."""
    node: AvroDefinite = schema.root
    for name in path.split("."):
        fields = {field.name: field.type for field in node.fields} if isinstance(node, AvroRecord) else {}
        if name not in fields:
            return False
        node = _real(fields[name], schema)
    return True


def _ruled(column: pa.Field, node: AvroType, schema: AvroSchema) -> pa.Field:
    resolved = _real(node, schema)
    props = resolved.props if not isinstance(resolved, AvroUnion) else {}
    if props.get(NAME) in SEMANTIC or (props.get(NAME) == DECIMAL and pa.types.is_binary(column.type)):
        field = semantic_field(column.name, column.type, props[NAME], props.get(PARAMETERS))
        return field.with_metadata({**(column.metadata or {}), **(field.metadata or {})})
    kind = column.type
    if isinstance(resolved, AvroArray):
        kind = container(kind, [_ruled(kind.value_field, resolved.items, schema)])
    elif isinstance(resolved, AvroMap):
        key, item = inner_fields(kind)
        kind = container(kind, [key, _ruled(item, resolved.values, schema)])
    return with_rule(column.with_nullable(True).with_type(kind), None)


def _code_points(text: str) -> bytes:
    return text.encode("latin-1")


def _real(node: AvroType, schema: AvroSchema) -> AvroDefinite:
    """The non-null type of a nullable union; the type itself otherwise."""
    resolved = schema.resolve(node)
    if isinstance(resolved, AvroUnion):
        real = members(resolved.branches, schema)
        return real[0] if len(real) == 1 else resolved
    return resolved


def _plain(node: JsonValue) -> JsonValue:
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    precision = node.get("precision")
    is_beyond = isinstance(precision, int) and precision > MAX_PRECISION
    drops = node.get(NAME) in SEMANTIC or (node.get(LOGICAL) == "decimal" and is_beyond)
    return {name: _plain(value) for name, value in node.items() if not (drops and name == LOGICAL)}
