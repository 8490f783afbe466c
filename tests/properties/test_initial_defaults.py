"""A column's initial default is the one it was added with, whatever becomes of its write default."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from laminae.catalog.initial_defaults import with_initial
from laminae.schema.apply import apply_changes
from laminae.schema.column import columns_of
from laminae.schema.diff import diff_schemas
from laminae.schema.identity import assign_ids, with_default, with_write_default
from laminae.schema.projection import FillWith, projection_between

DEFAULTS = st.sampled_from([None, '"x"', '"y"', '"z"'])
ACTIONS = st.lists(st.tuples(st.sampled_from(["add", "default"]), DEFAULTS, st.integers(0, 9)), max_size=8)


def history(actions: list[tuple[str, str | None, int]]) -> tuple[list[pa.Schema], dict[str, str | None]]:
    """The schemas of a source after each action, and what each column was added with."""
    schema, next_id = assign_ids(pa.schema([pa.field("id", pa.int64())]), 1)
    versions, added = [schema], dict[str, str | None]()
    for kind, default, place in actions:
        fields = list(schema)
        if kind == "add" or len(fields) == 1:
            name = f"c{len(fields)}"
            fields.append(with_default(pa.field(name, pa.string()), default))
            added[name] = default
        else:
            at = 1 + place % (len(fields) - 1)
            fields[at] = with_write_default(fields[at], default)
        schema, next_id = assign_ids(pa.schema(fields), next_id)
        versions.append(schema)
    return versions, added


def filled(old: pa.Schema, new: pa.Schema, fill: FillWith) -> dict[str, object]:
    batch = pa.RecordBatch.from_arrays([pa.array([None], field.type) for field in old], schema=old)
    (row,) = projection_between(old, new, fill=fill).project_batch(batch).to_pylist()
    return {name: value for name, value in row.items() if name not in old.names}


def value(text: str | None) -> str | None:
    return None if text is None else text.strip('"')


@given(ACTIONS)
def test_records_before_a_column_have_the_default_it_was_added_with(actions):
    versions, added = history(actions)
    for at, old in enumerate(versions):
        for new in versions[at:]:
            missing = set(new.names) - set(old.names)
            assert filled(old, new, FillWith.INITIAL) == {name: value(added[name]) for name in missing}
            write = {node.name: value(node.default) for node in columns_of(new) if node.name in missing}
            assert filled(old, new, FillWith.WRITE) == write


@given(ACTIONS, ACTIONS)
def test_a_diff_of_any_two_schemas_carries_both_defaults(one, other):
    for old in history(one)[0]:
        new = history(other)[0][-1]
        assert apply_changes(old, diff_schemas(old, new)).equals(new, check_metadata=True)


@given(ACTIONS)
def test_schemas_written_before_get_the_initial_defaults_of_their_history(actions):
    versions, added = history(actions)
    ids = {node.id: added.get(node.name) for node in columns_of(versions[-1])}
    for schema in versions:
        before = pa.schema(
            [with_default(field, column.default) for field, column in zip(schema, columns_of(schema), strict=True)]
        )
        assert with_initial(before, ids).equals(schema, check_metadata=True)
