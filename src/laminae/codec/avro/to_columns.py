"""From an Avro schema to columns: names, aliases, ids, defaults, nullability and types, as SPEC section 1 defines them.

The columns are those that Spark's `from_avro` returns with the writer schema, except where `type_table` says otherwise.
A union with more than one type besides null is a struct of member0, member1, ..., of which at most one is not NULL; int
with long is BIGINT, float with double is DOUBLE.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.avro.defaults import column_default
from laminae.codec.avro.type_table import form_of, is_null, member_name, members, promoted
from laminae.errors import InvalidDefault, NoColumnForm
from laminae.schema.avro import AvroArray, AvroEnum, AvroFixed, AvroMap, AvroPrimitive, AvroRecord, parse_avro
from laminae.schema.avro.nodes import AvroUnion
from laminae.schema.column import ALIASES, DEFAULT, EXTERNAL_ID, columns_of, dotted
from laminae.schema.defaults import check_defaults, encode_default
from laminae.schema.types import sql_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.schema.avro import AvroField, AvroSchema, AvroSource, AvroType, JsonValue
    from laminae.schema.column import Path

# Iceberg writes its ids under these names, one for each kind of inner type.
FIELD_ID, ELEMENT_ID, KEY_ID, VALUE_ID = "field-id", "element-id", "key-id", "value-id"


def columns_of_avro(source: AvroSource) -> pa.Schema:
    """The columns of a record schema. What cannot be a column is refused with its path."""
    schema = parse_avro(source)
    root = schema.root
    if not isinstance(root, AvroRecord):
        raise NoColumnForm(path="the root", problem=f"it is of type {root.branch_name}, not a record")
    return columns_of_record(schema, root)


def columns_of_record(schema: AvroSchema, record: AvroRecord) -> pa.Schema:
    """The columns of a record that is the schema's root or nested in it."""
    columns = pa.schema(_Columns(schema).fields(record, ()))
    check_defaults(columns_of(columns))
    return columns


class _Columns:
    """One traversal; `_open` are the enclosing records, none of which may occur again."""

    __slots__ = ("_open", "_schema")

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._open: list[str] = []

    def fields(self, record: AvroRecord, path: Path) -> list[pa.Field]:
        if record.name in self._open:
            raise NoColumnForm(path=dotted(path), problem=f"record {record.name} contains itself")
        self._open.append(record.name)
        fields = [self._field(field, (*path, field.name)) for field in record.fields]
        self._open.pop()
        return fields

    def _field(self, field: AvroField, path: Path) -> pa.Field:
        arrow, nullable = self._type(field.type, path)
        metadata = _ids(field.props, FIELD_ID)
        if field.aliases:
            metadata[ALIASES] = json.dumps(list(field.aliases), ensure_ascii=False).encode()
        # A nullable column is NULL where a record has no value for it, so it needs no explicit default of null.
        if field.has_default and field.default is not None:
            metadata[DEFAULT] = self._default(field, arrow, path).encode()
        return pa.field(field.name, arrow, nullable, metadata or None)

    def _default(self, field: AvroField, arrow: pa.DataType, path: Path) -> str:
        try:
            value = column_default(field.default, field.type, self._schema)
        except (ValueError, OverflowError) as problem:
            shown = json.dumps(field.default, ensure_ascii=False)
            raise InvalidDefault(default=shown, path=dotted(path), type=sql_type(arrow), problem=str(problem)) from None
        return encode_default(value, arrow, dotted(path))

    def _type(self, node: AvroType, path: Path) -> tuple[pa.DataType, bool]:
        """The column type, and whether it is nullable."""
        resolved = self._schema.resolve(node)
        if isinstance(resolved, AvroUnion):
            return self._union(resolved, path)
        if isinstance(resolved, AvroPrimitive | AvroEnum | AvroFixed):
            try:
                return form_of(resolved).arrow, is_null(resolved)
            except ValueError as problem:
                raise NoColumnForm(path=dotted(path), problem=str(problem)) from None
        if isinstance(resolved, AvroRecord):
            return pa.struct(self.fields(resolved, path)), False
        if isinstance(resolved, AvroArray):
            element = self._inner("element", resolved.items, path, _ids(resolved.props, ELEMENT_ID))
            return pa.list_(element), False
        return self._map(resolved, path), False

    def _map(self, node: AvroMap, path: Path) -> pa.DataType:
        key = pa.field("key", pa.string(), False, _ids(node.props, KEY_ID) or None)
        return pa.map_(key, self._inner("value", node.values, path, _ids(node.props, VALUE_ID)))

    def _inner(self, name: str, node: AvroType, path: Path, metadata: dict[bytes, bytes]) -> pa.Field:
        arrow, nullable = self._type(node, (*path, name))
        return pa.field(name, arrow, nullable, metadata or None)

    def _union(self, union: AvroUnion, path: Path) -> tuple[pa.DataType, bool]:
        real = members(union.branches, self._schema)
        nullable = len(real) < len(union.branches)
        if not real:
            if not nullable:
                raise NoColumnForm(path=dotted(path), problem="it is a union of no types")
            return pa.null(), True
        if len(real) == 1:
            return self._type(real[0], path)[0], nullable
        wider = promoted(real)
        if wider is not None:
            return wider, nullable
        inner = [
            pa.field(member_name(place), self._type(branch, (*path, member_name(place)))[0])
            for place, branch in enumerate(real)
        ]
        return pa.struct(inner), nullable


def _ids(props: Mapping[str, JsonValue], name: str) -> dict[bytes, bytes]:
    """An id assigned by another system, as field metadata."""
    external_id = props.get(name)
    return {EXTERNAL_ID: str(external_id).encode()} if type(external_id) is int and external_id >= 0 else {}
