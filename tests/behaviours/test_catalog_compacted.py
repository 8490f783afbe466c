"""What every catalog does with merged ranges of a changelog."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from laminae.catalog.changelog_updates import ForgetCompacted, PutCompacted
from laminae.catalog.model import CompactedRecord
from laminae.catalog.updates import AdvanceOwner, NextEpoch, PutSavepoint, Rewind
from laminae.errors import ConcurrentChange
from tests.support.catalogs import NOON, columns, drop, view

if TYPE_CHECKING:
    from laminae.catalog import Catalog

SCHEMA = columns("id")


@pytest.fixture
def owner(catalog: Catalog) -> int:
    """A view with the epochs 1 to 6."""
    owner_id = catalog.commit([view("v")]).ids[0]
    for _ in range(6):
        advance(catalog, owner_id)
    return owner_id


def advance(catalog: Catalog, owner_id: int) -> int:
    last = catalog.last_advance(owner_id)
    return catalog.commit([NextEpoch(), AdvanceOwner(owner_id, "v", last, (), ("f",), 1, SCHEMA)]).ids[0]


def merged(owner_id: int, first: int, last: int, *inputs: tuple[int, int]) -> PutCompacted:
    return PutCompacted(owner_id, "v", first, last, inputs, (f"{first}-{last}",), 3, True, SCHEMA, NOON)


def ranges(catalog: Catalog, owner_id: int, until: int | None = None) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in catalog.compacted(owner_id, until)]


def test_a_merged_range_is_read_as_it_was_written(catalog: Catalog, owner: int) -> None:
    seq = catalog.definition_seq()
    assert catalog.commit([replace(merged(owner, 1, 3), files=("a", "b"), is_plain=False)]).ids == (3,)
    assert catalog.compacted(owner) == (CompactedRecord(1, 3, ("a", "b"), 3, False, NOON, SCHEMA),)
    assert catalog.compacted(owner + 1) == ()
    assert catalog.definition_seq() == seq


def test_ranges_come_by_their_first_epochs_and_none_goes_beyond_the_epoch_that_is_asked_for(
    catalog: Catalog, owner: int
) -> None:
    catalog.commit([merged(owner, 4, 5), merged(owner, 1, 2), merged(owner, 1, 5, (1, 2), (4, 5))])
    assert ranges(catalog, owner) == [(1, 2), (1, 5), (4, 5)]
    assert ranges(catalog, owner, 4) == [(1, 2)]


@pytest.mark.parametrize(
    ("update", "found"),
    [
        ((2, 4), "another merge"),
        ((1, 3), "another merge"),
        ((3, 5), "another merge"),
        ((1, 7), "undone"),
        ((4, 6, (4, 5)), "is gone"),
    ],
    ids=[
        "it overlaps",
        "it is there",
        "it begins within",
        "an epoch is not there",
        "what it was merged from is not there",
    ],
)
def test_a_range_that_was_planned_from_something_else_is_refused(
    catalog: Catalog, owner: int, update: tuple, found: str
) -> None:
    catalog.commit([merged(owner, 1, 3)])
    first, last, *inputs = update
    with pytest.raises(ConcurrentChange, match=found):
        catalog.commit([merged(owner, first, last, *inputs)])
    assert ranges(catalog, owner) == [(1, 3)]


def test_ranges_that_contain_each_other_are_taken_in_any_order(catalog: Catalog, owner: int) -> None:
    catalog.commit([merged(owner, 1, 6)])
    catalog.commit([merged(owner, 2, 3), merged(owner, 1, 4), merged(owner, 5, 6)])
    assert ranges(catalog, owner) == [(1, 4), (1, 6), (2, 3), (5, 6)]


def test_a_dropped_view_gets_no_range(catalog: Catalog, owner: int) -> None:
    catalog.commit([drop("view", owner, "v")])
    assert catalog.commit([merged(owner, 1, 3)]).ids == (0,)
    assert catalog.compacted(owner) == ()


def test_ranges_that_are_forgotten_are_gone_and_the_others_stay(catalog: Catalog, owner: int) -> None:
    catalog.commit([merged(owner, 1, 2), merged(owner, 3, 4), merged(owner, 1, 4, (1, 2), (3, 4))])
    catalog.commit([ForgetCompacted(owner, ((1, 2), (3, 4)))])
    assert ranges(catalog, owner) == [(1, 4)]


def test_going_back_undoes_ranges_with_later_epochs_and_refuses_those_that_were_under_way(catalog: Catalog) -> None:
    owner = catalog.commit([view("v")]).ids[0]
    for _ in range(3):
        advance(catalog, owner)
    catalog.commit([PutSavepoint("p", NOON)])
    for _ in range(3):
        advance(catalog, owner)
    catalog.commit([merged(owner, 1, 2), merged(owner, 4, 5), merged(owner, 1, 5, (1, 2), (4, 5))])
    catalog.commit([Rewind("p")])
    assert ranges(catalog, owner) == [(1, 2)]
    advance(catalog, owner)
    with pytest.raises(ConcurrentChange, match="undone"):
        catalog.commit([merged(owner, 1, 5, (1, 2))])
