"""Whole rows as keys: equal rows have equal hashes, and map entries are put in a canonical order.

Values are hashed by Spark in their Spark representation. Hashes can collide: a lookup must also compare the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.spark.catalyst.expression import Expression, call, cases, column, each, each_two, literal, struct, when
from laminae.spark.catalyst.key_hash import canonical_key

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY, VALUE = "key", "value"


def row_hash(types: Mapping[str, spark.DataType]) -> Expression:
    """The hash over columns of these types. xxhash64 skips NULLs, so a text with their positions is hashed first."""
    nulls = call("concat", *(when(column(name).is_null(), literal("0"), literal("1")) for name in types))
    return call("xxhash64", nulls, *(_hashed(column(name), kind) for name, kind in types.items()))


def has_map(kind: spark.DataType) -> bool:
    match kind:
        case spark.MapType():
            return True
        case spark.ArrayType():
            return has_map(kind.elementType)
        case spark.StructType():
            return any(has_map(field.dataType) for field in kind.fields)
    return False


def with_sorted_maps(value: Expression, kind: spark.DataType) -> Expression:
    """The value with the entries of each map sorted by key: equal maps may have their entries in different orders."""
    return _sorted(value, kind, are_maps=True)


def _hashed(value: Expression, kind: spark.DataType) -> Expression:
    """The value in a form that Spark can hash: it hashes no maps, so these are replaced by their sorted entries."""
    return _sorted(value, kind, are_maps=False) if has_map(kind) else Expression(canonical_key(value.sql, kind))


def _sorted(value: Expression, kind: spark.DataType, are_maps: bool) -> Expression:
    if not has_map(kind):
        return value
    match kind:
        case spark.MapType(valueType=inner):
            entries = each("transform", call("map_entries", value), lambda entry: _entry(entry, inner, are_maps))
            ordered = each_two("array_sort", [entries], _compared)
            return call("map_from_entries", ordered) if are_maps else ordered
        case spark.ArrayType(elementType=inner):
            return each("transform", value, lambda item: _sorted(item, inner, are_maps))
        case spark.StructType(fields=fields):
            parts = [(field.name, _sorted(value.field(field.name), field.dataType, are_maps)) for field in fields]
            return when(value.is_there(), struct(parts))
    raise AssertionError(kind)


def _entry(entry: Expression, kind: spark.DataType, are_maps: bool) -> Expression:
    return struct([(KEY, entry.field(KEY)), (VALUE, _sorted(entry.field(VALUE), kind, are_maps))])


def _compared(one: Expression, other: Expression) -> Expression:
    left, right = one.field(KEY), other.field(KEY)
    return cases([(left.compared("<", right), literal(-1)), (left.compared(">", right), literal(1))], literal(0))
