"""Arrow schemas as the types of state rows: the Spark type that `laminae` uses for each, by name.

The mapping is the same as in `laminae.spark.catalyst.types`, which a test verifies. Nothing here imports Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import InvalidSchema
from laminae.schema.nesting import is_list
from laminae.schema.types import MAX_PRECISION, VARIANT
from laminae.state.types import Array, Field, Leaf, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Callable

# The first matching predicate determines the type.
LEAVES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "byte"),
    (pa.types.is_int16, "short"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_int64, "long"),
    (pa.types.is_uint8, "short"),
    (pa.types.is_uint16, "integer"),
    (pa.types.is_uint32, "long"),
    (pa.types.is_uint64, "decimal(20,0)"),
    (pa.types.is_float16, "float"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t), "string"),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t), "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time(6)"),
    (lambda t: pa.types.is_timestamp(t) and t.tz is not None, "timestamp"),
    (pa.types.is_timestamp, "timestamp_ntz"),
    (pa.types.is_duration, "interval day to second"),
    (pa.types.is_interval, "interval year to month"),
    (pa.types.is_null, "void"),
)


def struct_of(schema: pa.Schema) -> Struct:
    return Struct(tuple(_field(field) for field in schema))


def type_of(arrow: pa.DataType) -> Type:
    """The type of a state row that can store every value of an Arrow type. Raises `InvalidSchema` if there is none."""
    if arrow == VARIANT and b"variant" in (arrow.field(1).metadata or {}):
        return Leaf("variant")
    if pa.types.is_struct(arrow):
        return Struct(tuple(_field(field) for field in arrow))
    if pa.types.is_map(arrow):
        return Map(type_of(arrow.key_type), type_of(arrow.item_type), arrow.item_field.nullable)
    if is_list(arrow):
        return Array(type_of(arrow.value_type), arrow.value_field.nullable)
    if pa.types.is_dictionary(arrow):
        return type_of(arrow.value_type)
    if pa.types.is_decimal(arrow) and arrow.precision <= MAX_PRECISION and arrow.scale >= 0:
        return Leaf(f"decimal({arrow.precision},{arrow.scale})")
    leaf_name = next((name for test, name in LEAVES if test(arrow)), None)
    if leaf_name is None:
        raise InvalidSchema(path=str(arrow), problem="there is no Spark type that holds it")
    return Leaf(leaf_name)


def _field(field: pa.Field) -> Field:
    return Field(field.name, type_of(field.type), field.nullable)
