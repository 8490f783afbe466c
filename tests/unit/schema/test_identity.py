"""Column ids: given once, never again."""

import pyarrow as pa

from laminae.schema.column import columns_of
from laminae.schema.identity import assign_ids, highest_id, without_ids
from tests.support.build import col, schema, struct


def ids(columns):
    return {node.name: (node.id, ids(node.children)) for node in columns}


def test_struct_fields_list_elements_and_map_values_have_ids_and_map_keys_none():
    kind = pa.map_(pa.string(), pa.list_(struct(col("x", "int"))))
    numbered, after = assign_ids(schema(col("a"), col("m", kind)), 1)
    element = (4, {"x": (5, {})})
    assert ids(columns_of(numbered)) == {
        "a": (1, {}),
        "m": (2, {"key": (None, {}), "value": (3, {"element": element})}),
    }
    assert after == 6
    assert highest_id(numbered) == 5


def test_ids_that_are_there_stay():
    numbered, after = assign_ids(schema(col("a", id=7), col("b")), 9)
    assert ids(columns_of(numbered)) == {"a": (7, {}), "b": (9, {})}
    assert after == 10


def test_a_field_can_become_a_new_column():
    bare = without_ids(col("a", struct(col("x", id=2)), id=1, default='"d"'))
    assert bare.metadata == {b"laminae:default": b'"d"'}
    assert bare.type.field(0).metadata is None


def test_trees_are_cached_by_schema_and_equal_columns_are_one_object():
    one, other = schema(col("a", "int", id=1)), schema(col("a", "int", id=1))
    assert columns_of(one) is columns_of(one)
    assert columns_of(one)[0] is columns_of(other)[0]
    assert columns_of(one)[0] is not columns_of(schema(col("a", "int", id=2)))[0]
