"""Renames of a sink's columns one after the other: swaps, cycles and names that are taken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from laminae.spark.sinks.renames import rename_steps

NAMES = ["a", "b", "c", "d", "A"]


@st.composite
def tables(draw):
    """The names of a table's columns, and new names, no two alike, for some of them."""
    present = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    renamed = draw(st.lists(st.sampled_from(present), unique=True))
    targets = draw(st.lists(st.sampled_from([*NAMES, "x"]), unique=True, min_size=len(renamed), max_size=len(renamed)))
    return present, dict(zip(renamed, targets, strict=True))


@given(tables())
def test_every_column_has_its_new_name_and_no_step_meets_a_name_that_is_taken(table):
    present, renames = table
    held = {name: name for name in present}
    for old, new in rename_steps(renames, present):
        assert new not in held
        held[new] = held.pop(old)
    assert {held[new]: new for old, new in renames.items()} == renames
    assert sorted(held.values()) == sorted(present)


def test_a_swap_takes_one_name_for_a_moment():
    assert rename_steps({"a": "b", "b": "a"}, ["a", "b"]) == [
        ("a", "laminae_renamed"),
        ("b", "a"),
        ("laminae_renamed", "b"),
    ]
