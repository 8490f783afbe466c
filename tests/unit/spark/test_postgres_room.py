"""Which PostgreSQL type has room for which, as a table, and what a table of columns needs before rows fit it."""

from __future__ import annotations

import pytest

from laminae.spark.sinks.postgres.alterations import KnownColumn, TableColumn, WantedColumn, alterations
from laminae.spark.sinks.postgres.type_capacity import Room, canonical, room, widened

ROOM = [
    ("integer", "integer", Room.ENOUGH, None),
    ("integer", "bigint", Room.TOO_LITTLE, "bigint"),
    ("bigint", "smallint", Room.ENOUGH, None),
    ("smallint", "numeric(20)", Room.TOO_LITTLE, "numeric(20)"),
    ("numeric(10,2)", "numeric(12,2)", Room.TOO_LITTLE, "numeric(12,2)"),
    ("numeric(10,2)", "numeric(12,4)", Room.TOO_LITTLE, "numeric(12,4)"),
    ("numeric(10,4)", "numeric(10,2)", Room.TOO_LITTLE, "numeric(12,4)"),
    ("numeric(10,2)", "bigint", Room.TOO_LITTLE, "numeric(21,2)"),
    ("numeric", "numeric(38,10)", Room.ENOUGH, None),
    ("numeric", "bigint", Room.ENOUGH, None),
    ("integer", "double precision", Room.TOO_LITTLE, "double precision"),
    ("real", "double precision", Room.TOO_LITTLE, "double precision"),
    ("double precision", "real", Room.ENOUGH, None),
    ("double precision", "bigint", Room.UNKNOWN, None),
    ("text", "bigint", Room.ENOUGH, None),
    ("character varying(3)", "text", Room.TOO_LITTLE, "text"),
    ("character varying(3)", "bigint", Room.UNKNOWN, None),
    ("jsonb", "text", Room.UNKNOWN, None),
    ("date", "timestamp without time zone", Room.UNKNOWN, None),
]


@pytest.mark.parametrize(("present", "wanted", "answer", "target"), ROOM)
def test_a_type_has_room_for_another_or_is_widened_to_one_that_has(present, wanted, answer, target):
    assert room(canonical(present), canonical(wanted)) is answer
    if target is not None:
        found = widened(canonical(present), canonical(wanted))
        assert found == canonical(target)
        assert room(found, canonical(wanted)) is Room.ENOUGH


def wanted(*columns: tuple[str, str, str]) -> list[WantedColumn]:
    return [WantedColumn(name, kind, identity) for identity, name, kind in columns]


TABLE = [TableColumn(1, "id", "bigint"), TableColumn(2, "a", "integer"), TableColumn(3, "b", "integer")]
KNOWN = {"1": KnownColumn(1, "bigint"), "2": KnownColumn(2, "integer"), "3": KnownColumn(3, "integer")}
ID = ("1", "id", "bigint")


def test_a_column_that_was_dropped_and_came_again_is_another_column():
    found = alterations(wanted(ID, ("3", "b", "integer"), ("9", "a", "integer")), TABLE, KNOWN)
    assert found.renames == (("a", "a_dropped"),)
    assert [column.name for column in found.additions] == ["a"]


def test_a_rename_that_somebody_did_in_the_database_is_not_asked_for_again():
    there = [TABLE[0], TableColumn(2, "b", "integer"), TableColumn(3, "a", "integer")]
    swapped = wanted(ID, ("2", "b", "integer"), ("3", "a", "integer"))
    assert alterations(swapped, there, KNOWN).renames == ()
    assert len(alterations(swapped, TABLE, KNOWN).renames) == 3


def test_a_table_that_was_narrower_from_the_beginning_is_not_called_lossy():
    there = [TableColumn(1, "id", "bigint"), TableColumn(2, "a", "real")]
    now = wanted(ID, ("2", "a", "double precision"))
    assert alterations(now, there, {}).lossy == ()
    assert alterations(now, there, {"2": KnownColumn(2, "double precision")}).lossy == ()
    assert alterations(now, there, {"2": KnownColumn(2, "real")}).lossy == (("a", "double precision"),)


def test_a_column_of_a_replaced_view_gives_its_name_to_one_of_an_unrelated_type():
    now = [WantedColumn("a", "text", "a")]
    assert alterations(now, TABLE, {}, frozenset({2})).renames == (("a", "a_dropped"),)
    # Nobody knows whose it is: PostgreSQL judges each value.
    assert alterations(now, TABLE, {}) == alterations(now, TABLE[1:2], {})
    assert alterations(now, TABLE, {}).renames == ()
