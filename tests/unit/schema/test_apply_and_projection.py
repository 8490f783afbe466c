"""Applying changes, and carrying batches from any version to the current one."""

import pyarrow as pa
import pytest

from laminae import apply_evolution, diff_schemas
from laminae.errors import InvalidChange, InvalidDefault, SchemaMismatch
from laminae.schema.change import ColumnAdded, ColumnDropped, ColumnMoved, ColumnRenamed, TypeWidened
from laminae.schema.projection import projection_between
from tests.support.build import col, list_of, schema, struct

NO_COLUMNS = pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))


def evolve(old, new):
    result, projection = apply_evolution(old, diff_schemas(old, new))
    assert result.equals(new)
    return projection


def project(old, new, rows):
    return evolve(old, new).project_batch(pa.RecordBatch.from_pylist(rows, old)).to_pylist()


def test_no_changes_give_the_same_schema_and_an_identity():
    old = schema(col("a", "int"), col("b"))
    result, projection = apply_evolution(old, ())
    assert result is old
    assert projection.is_identity()
    assert projection.mappings == (0, 1)
    assert projection.new_column_count() == 0


def test_added_nullable_column_is_null_for_old_records():
    assert project(schema(col("a", "int")), schema(col("a", "int"), col("b")), [{"a": 1}]) == [{"a": 1, "b": None}]


def test_added_column_with_default_fills_old_records():
    new = schema(col("a", "int"), col("b", null=False, default='"x"'))
    projection = evolve(schema(col("a", "int")), new)
    assert projection.mappings == (0, None)
    assert projection.new_column_count() == 1
    batch = pa.RecordBatch.from_pylist([{"a": 1}, {"a": 2}], schema(col("a", "int")))
    assert projection.project_batch(batch).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]


def test_dropped_column_is_left_out():
    assert project(schema(col("a", "int"), col("b")), schema(col("a", "int")), [{"a": 1, "b": "x"}]) == [{"a": 1}]


def test_widened_column_keeps_its_values():
    batch = pa.RecordBatch.from_pylist([{"a": 7}, {"a": None}], schema(col("a", "int")))
    projected = evolve(schema(col("a", "int")), schema(col("a", "bigint"))).project_batch(batch)
    assert projected.schema.field("a").type == pa.int64()
    assert projected.to_pylist() == [{"a": 7}, {"a": None}]


def test_renamed_column_keeps_its_values():
    assert project(schema(col("a", "int", id=1)), schema(col("b", "int", id=1)), [{"a": 7}]) == [{"b": 7}]


def test_a_rename_without_an_id_keeps_its_values_because_the_change_says_so():
    old = schema(col("k"), col("a", "int"))
    _, projection = apply_evolution(old, [ColumnRenamed(("a",), "b")])
    batch = pa.RecordBatch.from_pylist([{"k": "x", "a": 7}], old)
    assert projection.mappings == (0, 1)
    assert projection.project_batch(batch).to_pylist() == [{"k": "x", "b": 7}]


def test_a_rename_by_alias_keeps_its_values():
    old, new = schema(col("k"), col("a", "int")), schema(col("k"), col("b", "int", aliases='["a"]'))
    assert project(old, new, [{"k": "x", "a": 7}]) == [{"k": "x", "b": 7}]


def test_reorder_still_yields_a_projection():
    old = schema(col("a", "int"), col("b"))
    projection = evolve(old, schema(col("b"), col("a", "int")))
    assert projection.mappings == (1, 0)
    assert not projection.is_identity()


def test_many_changes_in_one_batch():
    old = schema(col("a", "int", id=1), col("b", id=2), col("c", "double", id=3))
    new = schema(col("c", "double", id=3), col("aa", "bigint", id=1), col("d", "int", id=4, default="5"))
    assert project(old, new, [{"a": 1, "b": "x", "c": 0.5}]) == [{"c": 0.5, "aa": 1, "d": 5}]


def test_swapped_names_do_not_swap_values():
    old = schema(col("a", "int", id=1), col("b", "int", id=2))
    new = schema(col("b", "int", id=1), col("a", "int", id=2))
    assert project(old, new, [{"a": 1, "b": 2}]) == [{"b": 1, "a": 2}]


def test_rename_and_widen_keeps_the_values():
    assert project(schema(col("a", "int", id=1)), schema(col("b", "bigint", id=1)), [{"a": 7}]) == [{"b": 7}]


def test_dropped_and_added_again_does_not_resurrect_old_values():
    old, new = (
        schema(col("k", "int", id=9), col("a", "int", id=1)),
        schema(col("k", "int", id=9), col("a", "int", id=2)),
    )
    assert project(old, new, [{"k": 1, "a": 7}]) == [{"k": 1, "a": None}]


def test_any_version_goes_straight_to_the_current_one():
    v1 = schema(col("a", "int", id=1), col("b", id=2))
    v4 = schema(col("b", id=7, default='"new"'), col("aa", "bigint", id=1))
    assert projection_between(v1, v4).project_batch(
        pa.RecordBatch.from_pylist([{"a": 1, "b": "old"}], v1)
    ).to_pylist() == [{"b": "new", "aa": 1}]


def nested(name, kind):
    element = pa.field("element", struct(col(name, kind, id=4), col("k", id=5)), metadata={"laminae:id": "3"})
    return schema(col("m", pa.map_(pa.string(), pa.field("value", list_of(element))), id=1))


def test_nested_rename_inside_a_list_of_structs_inside_a_map_keeps_values():
    rows = [{"m": [("x", [{"old": 1, "k": "a"}, None]), ("y", None)]}, {"m": None}]
    assert project(nested("old", "int"), nested("new", "bigint"), rows) == [
        {"m": [("x", [{"new": 1, "k": "a"}, None]), ("y", None)]},
        {"m": None},
    ]


def test_unrelated_type_starts_anew():
    assert project(schema(col("a", "string")), schema(col("a", "int")), [{"a": "x"}]) == [{"a": None}]


def test_sliced_batches_are_projected_by_their_own_rows():
    old = schema(col("l", pa.list_(struct(col("x", "int")))), col("f", pa.list_(pa.int32(), 2)))
    new = schema(col("l", pa.list_(struct(col("x", "bigint"), col("y")))), col("f", pa.list_(pa.int64(), 2)))
    rows = [{"l": [{"x": i}] * i if i % 3 else None, "f": [i, i] if i % 2 else None} for i in range(8)]
    batch = pa.RecordBatch.from_pylist(rows, old).slice(2, 5)
    expected = [
        {"l": None if r["l"] is None else [{"x": e["x"], "y": None} for e in r["l"]], "f": r["f"]} for r in rows[2:7]
    ]
    assert evolve(old, new).project_batch(batch).to_pylist() == expected


def test_null_rows_that_still_hold_entries_are_not_looked_at():
    values = pa.array([1, None, 3], pa.int32())
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=pa.array([False, True, False]))
    old = schema(col("l", pa.list_(pa.int32())))
    new = schema(col("l", pa.list_(pa.field("element", pa.int64(), nullable=False))))
    batch = pa.RecordBatch.from_arrays([hidden], schema=old)
    assert projection_between(old, new).project_batch(batch).to_pylist() == [{"l": [1]}, {"l": None}, {"l": [3]}]


@pytest.mark.parametrize("make_new", [pa.list_, pa.list_view, pa.large_list_view])
@pytest.mark.parametrize("make_old", [pa.list_, pa.list_view, pa.large_list])
def test_lists_and_list_views_become_each_other(make_old, make_new):
    old, new = make_old(pa.int32()), make_new(pa.int64())
    rows = [[1], None, [2, 3], [], [4]]
    batch = pa.RecordBatch.from_arrays([pa.array(rows, old)], schema=schema(col("l", old)))
    for part, expected in ((batch, rows), (batch.slice(2, 2), rows[2:4])):
        projected = projection_between(schema(col("l", old)), schema(col("l", new))).project_batch(part)
        projected.validate(full=True)
        assert projected.column(0).to_pylist() == expected


def test_a_view_whose_rows_overlap_or_are_out_of_order_keeps_them():
    values = pa.array([1, 2, 3, 4], pa.int32())
    view = pa.ListViewArray.from_arrays(pa.array([2, 0, 1], pa.int32()), pa.array([2, 2, 1], pa.int32()), values)
    old, new = schema(col("l", view.type)), schema(col("l", pa.list_(pa.int64())))
    projected = projection_between(old, new).project_batch(pa.RecordBatch.from_arrays([view], schema=old))
    assert projected.column(0).to_pylist() == [[3, 4], [1, 2], [2]]


def test_fixed_size_lists_of_size_zero_are_projected():
    old, new = schema(col("l", pa.list_(pa.int32(), 0))), schema(col("l", pa.list_(pa.int64(), 0)))
    assert project(old, new, [{"l": []}, {"l": None}]) == [{"l": []}, {"l": None}]


@pytest.mark.parametrize(
    "array",
    [
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None])),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", None])),
    ],
    ids=["dictionary", "run end encoded"],
)
def test_nulls_hidden_in_an_encoding_are_seen(array):
    old, new = schema(col("a", array.type)), schema(col("a", array.type, null=False))
    with pytest.raises(SchemaMismatch, match="1 of 2 values are NULL"):
        projection_between(old, new).project_batch(pa.RecordBatch.from_arrays([array], schema=old))


def test_a_sorted_map_is_the_same_map_in_another_layout():
    old = schema(col("m", pa.map_(pa.string(), pa.int32())))
    new = schema(col("m", pa.map_(pa.string(), pa.int32(), keys_sorted=True)))
    assert project(old, new, [{"m": [("a", 1)]}]) == [{"m": [("a", 1)]}]
    assert evolve(old, new).new_schema.field("m").type.keys_sorted


def test_another_key_makes_another_map():
    old, new = schema(col("m", pa.map_(pa.string(), pa.int32()))), schema(col("m", pa.map_(pa.int32(), pa.int32())))
    assert project(old, new, [{"m": [("a", 1)]}]) == [{"m": None}]


def test_empty_batch_keeps_its_zero_rows_and_gets_the_new_schema():
    old, new = schema(col("a", "int")), schema(col("a", "bigint"), col("b", null=False))
    projected = evolve(old, new).project_batch(pa.RecordBatch.from_pylist([], old))
    assert projected.num_rows == 0
    assert projected.schema.equals(new)


def test_dropping_every_column_keeps_the_row_count():
    old = schema(col("a", "int"))
    assert evolve(old, schema()).project_batch(pa.RecordBatch.from_pylist([{"a": 1}] * 3, old)).num_rows == 3


@pytest.mark.parametrize(
    ("old", "new", "row", "path"),
    [
        (schema(col("a")), schema(col("a", null=False)), {"a": None}, "a"),
        (schema(), schema(col("a", null=False)), {}, "a"),
        (schema(col("a", "bigint")), schema(col("a", "int")), {"a": 2**40}, "a"),
        (schema(col("a", "bigint")), schema(col("a", "double")), {"a": 2**53 + 1}, "a"),
        (schema(col("a", "double")), schema(col("a", "float")), {"a": 0.1}, "a"),
        (schema(col("a", "double")), schema(col("a", "float")), {"a": 1e300}, "a"),
        (schema(col("a", pa.timestamp("s"))), schema(col("a", pa.timestamp("ns"))), {"a": 2**60}, "a"),
        (
            schema(col("s", struct(col("x", "int")))),
            schema(col("s", struct(col("x", "int", null=False)))),
            {"s": {"x": None}},
            "s.x",
        ),
        (
            schema(col("s", struct(col("x", "int")))),
            schema(col("s", struct(col("x", "int"), col("y", "int", null=False)))),
            {"s": {"x": 1}},
            "s.y",
        ),
    ],
    ids=[
        "null",
        "missing",
        "overflow",
        "inexact",
        "rounded",
        "infinite",
        "timestamp overflow",
        "nested null",
        "nested missing",
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(old, new, row, path):
    batch = pa.RecordBatch.from_pylist([row], old) if len(old) else NO_COLUMNS
    projection = projection_between(old, new)
    with pytest.raises(SchemaMismatch) as refused:
        projection.project_batch(batch)
    assert refused.value.params["path"] == path


def test_a_null_parent_excuses_its_required_children():
    old = schema(col("s", struct(col("x", "int"))))
    new = schema(col("s", struct(col("x", "int", null=False), col("y", "int", null=False, default="3"))))
    assert project(old, new, [{"s": None}, {"s": {"x": 1}}]) == [{"s": None}, {"s": {"x": 1, "y": 3}}]


def test_a_batch_of_another_schema_is_refused():
    projection = projection_between(schema(col("a", "int")), schema(col("a", "bigint")))
    for wrong in (schema(col("b", "int")), schema(col("a")), schema(col("a", "int"), col("b"))):
        with pytest.raises(SchemaMismatch, match="this projection starts from"):
            projection.project_batch(pa.RecordBatch.from_pylist([], wrong))


def test_a_default_that_is_no_value_of_its_type_is_refused_when_it_would_be_used():
    bad = schema(col("a", "int", default='"x"'))
    with pytest.raises(InvalidDefault):
        projection_between(schema(), bad).project_batch(NO_COLUMNS)


def test_schema_metadata_and_comments_survive():
    old = pa.schema([pa.field("a", pa.int32(), metadata={"comment": "kept"})], metadata={"owner": "sales"})
    result, _ = apply_evolution(old, [TypeWidened(("a",), pa.int32(), pa.int64()), ColumnAdded(("b",), pa.int8())])
    assert result.metadata == {b"owner": b"sales"}
    assert result.field("a").metadata == {b"comment": b"kept"}


def test_an_added_column_never_takes_the_id_of_one_that_stays():
    result, _ = apply_evolution(schema(col("a", id=1)), [ColumnAdded(("b",), pa.int8(), id=1)])
    assert (result.field("a").metadata, result.field("b").metadata) == ({b"laminae:id": b"1"}, None)


@pytest.mark.parametrize(
    "change",
    [
        ColumnDropped(("nope",), pa.int8()),
        ColumnRenamed(("nope",), "b"),
        ColumnAdded(("nope", "x"), pa.int8()),
        ColumnMoved(("nope",), 0),
        ColumnMoved(("a",), 5),
    ],
    ids=lambda change: type(change).__name__ + str(change.path),
)
def test_a_change_that_finds_no_column_is_refused(change):
    with pytest.raises(InvalidChange):
        apply_evolution(schema(col("a", "int")), [change])
