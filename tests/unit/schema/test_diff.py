"""What changed between two schemas."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from laminae import diff_schemas
from laminae.errors import InvalidSchema
from laminae.schema.change import (
    ColumnAdded,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    DefaultChanged,
    NullabilityChanged,
    TypeChanged,
    TypeNarrowed,
    TypeWidened,
)
from tests.support.build import col, list_of, schema, struct


def test_identical_schemas_have_no_changes():
    assert diff_schemas(schema(col("a"), col("b", "int")), schema(col("a"), col("b", "int"))) == ()


def test_added_column():
    changes = diff_schemas(schema(col("a")), schema(col("a"), col("b", "int")))
    assert changes == (ColumnAdded(("b",), pa.int32(), nullable=True),)
    assert changes[0].column_name == "b"
    assert changes[0].is_lossless


def test_added_required_column_is_not_lossless():
    (change,) = diff_schemas(schema(), schema(col("b", "int", null=False)))
    assert not change.is_lossless


def test_added_column_with_default_carries_it():
    (change,) = diff_schemas(schema(), schema(col("b", "int", null=False, default="7")))
    assert change.default == "7"
    assert change.is_lossless


def test_column_added_in_the_middle_is_one_change_with_its_position():
    changes = diff_schemas(schema(col("a"), col("c")), schema(col("a"), col("b"), col("c")))
    assert changes == (ColumnAdded(("b",), pa.string(), position=1),)


def test_dropped_column():
    (change,) = diff_schemas(schema(col("a"), col("b", "int")), schema(col("a")))
    assert change == ColumnDropped(("b",), pa.int32())
    assert not change.is_lossless


def test_renamed_column_is_found_by_its_id():
    changes = diff_schemas(schema(col("a", id=1)), schema(col("b", id=1)))
    assert changes == (ColumnRenamed(("a",), "b"),)
    assert changes[0].old_name == "a"


def test_renamed_column_is_found_by_its_parquet_field_id():
    changes = diff_schemas(schema(col("a", external=4)), schema(col("b", external=4)))
    assert changes == (ColumnRenamed(("a",), "b"),)


def test_renamed_column_is_found_by_an_alias():
    changes = diff_schemas(schema(col("a")), schema(col("b", aliases='["a"]')))
    assert changes == (ColumnRenamed(("a",), "b"),)


def test_rename_without_identity_is_drop_and_add_with_a_note():
    dropped, added = diff_schemas(schema(col("id"), col("a", "int")), schema(col("id"), col("b", "int")))
    assert (type(dropped), type(added)) == (ColumnDropped, ColumnAdded)
    assert dropped.possible_rename_to == "b"
    assert added.possible_rename_of == "a"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (schema(col("a", "int"), col("k")), schema(col("b"), col("k"))),
        (schema(col("a", "int"), col("k")), schema(col("k"), col("b", "int"))),
        (schema(col("a", "int", id=1)), schema(col("b", "int", id=2))),
    ],
    ids=["another type", "another place", "both have ids"],
)
def test_drop_and_add_are_no_possible_rename_with(old, new):
    dropped, added = diff_schemas(old, new)
    assert dropped.possible_rename_to is None
    assert added.possible_rename_of is None


def test_widened_type():
    changes = diff_schemas(schema(col("a", "int")), schema(col("a", "bigint")))
    assert changes == (TypeWidened(("a",), pa.int32(), pa.int64()),)


def test_string_and_large_string_differ_physically_in_both_directions():
    for old, new in (("string", "large_string"), ("large_string", "string")):
        (change,) = diff_schemas(schema(col("a", old)), schema(col("a", new)))
        assert isinstance(change, TypeWidened)
        assert change.is_physical


def test_narrowed_type():
    (change,) = diff_schemas(schema(col("a", "bigint")), schema(col("a", "int")))
    assert change == TypeNarrowed(("a",), pa.int64(), pa.int32())
    assert not change.is_lossless


def test_bigint_to_double_is_not_lossless():
    (change,) = diff_schemas(schema(col("a", "bigint")), schema(col("a", "double")))
    assert isinstance(change, TypeNarrowed)


def test_unrelated_type():
    (change,) = diff_schemas(schema(col("a", "string")), schema(col("a", "int")))
    assert isinstance(change, TypeChanged)


def test_nullability_both_ways():
    relaxed = diff_schemas(schema(col("a", null=False)), schema(col("a")))
    required = diff_schemas(schema(col("a")), schema(col("a", null=False)))
    assert relaxed == (NullabilityChanged(("a",), nullable=True),)
    assert required == (NullabilityChanged(("a",), nullable=False),)
    assert relaxed[0].is_lossless
    assert not required[0].is_lossless


def test_changed_default():
    changes = diff_schemas(schema(col("a", "int", default="1")), schema(col("a", "int", default="2")))
    assert changes == (DefaultChanged(("a",), "1", "2"),)


def test_pure_reorder_is_one_move_of_the_column_that_moved():
    old = schema(col("a"), col("b"), col("c"), col("d"))
    assert diff_schemas(old, schema(col("d"), col("a"), col("b"), col("c"))) == (ColumnMoved(("d",), 0),)


def test_swap_of_two_names_is_two_renames():
    old = schema(col("a", "int", id=1), col("b", "string", id=2))
    new = schema(col("b", "int", id=1), col("a", "string", id=2))
    assert diff_schemas(old, new) == (ColumnRenamed(("a",), "b"), ColumnRenamed(("b",), "a"))


def test_swap_of_two_places_is_a_move():
    old = schema(col("a", "int", id=1), col("b", "int", id=2))
    assert diff_schemas(old, schema(col("b", "int", id=2), col("a", "int", id=1))) == (ColumnMoved(("b",), 0),)


def test_rename_and_widen_of_one_column():
    changes = diff_schemas(schema(col("a", "int", id=1)), schema(col("b", "bigint", id=1)))
    assert changes == (ColumnRenamed(("a",), "b"), TypeWidened(("b",), pa.int32(), pa.int64()))


def test_column_dropped_and_added_again_is_another_column():
    changes = diff_schemas(schema(col("a", "int", id=1)), schema(col("a", "int", id=2)))
    assert changes == (ColumnDropped(("a",), pa.int32(), id=1), ColumnAdded(("a",), pa.int32(), id=2))


def test_reused_id_is_the_same_column_whatever_its_name_and_type():
    changes = diff_schemas(schema(col("a", "int", id=1)), schema(col("b", "string", id=1)))
    assert changes == (ColumnRenamed(("a",), "b"), TypeChanged(("b",), pa.int32(), pa.string()))


def test_a_column_with_an_id_matches_one_without_by_name():
    assert diff_schemas(schema(col("a", "int", id=1)), schema(col("a", "int"))) == ()


def test_identity_wins_over_the_name():
    old = schema(col("a", "int", id=1), col("b", "int", id=2))
    new = schema(col("b", "int", id=1), col("c", "int"))
    assert diff_schemas(old, new) == (
        ColumnDropped(("b",), pa.int32(), id=2),
        ColumnRenamed(("a",), "b"),
        ColumnAdded(("c",), pa.int32()),
    )


def test_nested_struct_changes_carry_their_path():
    old = schema(col("m", struct(col("x", "int"), col("y"))))
    new = schema(col("m", struct(col("x", "bigint"), col("z", "double"))))
    changes = diff_schemas(old, new)
    assert [(type(change).__name__, change.column_name) for change in changes] == [
        ("ColumnDropped", "m.y"),
        ("TypeWidened", "m.x"),
        ("ColumnAdded", "m.z"),
    ]


def test_nested_rename_inside_a_list_of_structs_inside_a_map():
    def inside(name):
        element = pa.field("element", struct(col(name, "int", id=4), col("k", id=5)), metadata={"laminae:id": "3"})
        return schema(col("m", pa.map_(pa.string(), pa.field("value", list_of(element))), id=1))

    (change,) = diff_schemas(inside("old"), inside("new"))
    assert change == ColumnRenamed(("m", "value", "element", "old"), "new")
    assert change.column_name == "m.value.element.old"


def test_list_layout_changes_physically_and_its_element_still_widens():
    old = schema(col("l", pa.list_(pa.int32())))
    physical, widened = diff_schemas(old, schema(col("l", pa.large_list(pa.int64()))))
    assert physical.is_physical
    assert widened == TypeWidened(("l", "element"), pa.int32(), pa.int64())


def test_map_key_and_value_are_compared_by_role():
    old = schema(col("m", pa.map_(pa.int32(), pa.int32())))
    changes = diff_schemas(old, schema(col("m", pa.map_(pa.int64(), pa.int64()))))
    assert [change.column_name for change in changes] == ["m.key", "m.value"]


def test_the_name_of_a_list_element_field_means_nothing():
    old = schema(col("l", pa.list_(pa.field("item", pa.int32()))))
    assert diff_schemas(old, schema(col("l", pa.list_(pa.field("element", pa.int32()))))) == ()


def test_changes_come_in_canonical_order():
    old = schema(
        col("gone", id=1),
        col("a", "int", id=2),
        col("n", id=3, null=False),
        col("f", "int", id=4, default="1"),
        col("z", id=5),
    )
    new = schema(
        col("z", id=5), col("b", "bigint", id=2), col("n", id=3), col("f", "int", id=4, default="2"), col("new", id=6)
    )
    assert [type(change) for change in diff_schemas(old, new)] == [
        ColumnDropped, ColumnRenamed, TypeWidened, NullabilityChanged, DefaultChanged, ColumnAdded, ColumnMoved,
    ]  # fmt: skip


def test_changes_behind_a_drop_come_in_the_order_of_the_schema():
    old = schema(col("x"), col("a", "int"), col("b", "int"), col("c", "int"))
    changes = diff_schemas(old, schema(col("a", "bigint"), col("b", "bigint"), col("c", "bigint")))
    assert [change.column_name for change in changes] == ["x", "a", "b", "c"]


def test_many_threads_diff_at_once():
    def work(worker):
        for i in range(300):
            old = schema(col(f"w{worker}_{i}", "int"))
            assert len(diff_schemas(old, old.append(col("more")))) == 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_multiple_changes_at_once():
    old = schema(col("a", "int"), col("b"))
    changes = diff_schemas(old, schema(col("a", "bigint"), col("c", "double")))
    assert {type(change).__name__ for change in changes} == {"ColumnDropped", "TypeWidened", "ColumnAdded"}


def test_dictionary_encoding_is_physical():
    (change,) = diff_schemas(schema(col("a")), schema(col("a", pa.dictionary(pa.int32(), pa.string()))))
    assert change.is_physical


def test_another_time_zone_shows_the_same_instants():
    (change,) = diff_schemas(
        schema(col("t", pa.timestamp("us", "UTC"))), schema(col("t", pa.timestamp("us", "Europe/Paris")))
    )
    assert change.is_physical


def test_names_with_dots_are_quoted_in_the_column_name():
    (change,) = diff_schemas(schema(), schema(col("a.b")))
    assert change.column_name == "`a.b`"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (schema(col("a"), col("A")), "only in case"),
        (schema(col("a"), col("a")), "twice"),
        (schema(col("")), "empty name"),
        (schema(col("a", id=1), col("b", struct(col("x", id=1)))), "column id 1"),
        (schema(col("a", aliases="nonsense")), "JSON list"),
        (pa.schema([pa.field("a", pa.int8(), metadata={"laminae:id": "x"})]), "not a number"),
        (pa.schema([pa.field("a", pa.int8(), metadata={"laminae:id": "1" * 5000})]), "not a number"),
        (pa.schema([pa.field("a", pa.int8(), metadata={b"laminae:default": b"\xff"})]), "not UTF-8"),
        (schema(col("a", external=1), col("b", external=1)), "belongs to two columns"),
    ],
    ids=["case", "duplicate", "empty", "id twice", "aliases", "id text", "id long", "bytes", "external"],
)
def test_invalid_schema_is_refused_with_its_path(bad, told):
    with pytest.raises(InvalidSchema, match=told):
        diff_schemas(schema(), bad)


def test_schemas_deeper_than_the_limit_are_refused():
    kind = pa.int32()
    for _ in range(120):
        kind = pa.list_(kind)
    with pytest.raises(InvalidSchema, match="nested deeper"):
        diff_schemas(schema(), schema(col("deep", kind)))


def test_fifty_deep_and_ten_thousand_wide_schemas_work():
    kind = pa.int32()
    for level in range(50):
        kind = struct(col(f"s{level}", kind))
    wide = schema(*(col(f"c{i}", "int") for i in range(10_000)), col("deep", kind))
    assert len(diff_schemas(schema(), wide)) == 10_001
    assert diff_schemas(wide, wide.append(col("more"))) == (ColumnAdded(("more",), pa.string()),)
