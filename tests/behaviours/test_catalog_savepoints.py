"""What every catalog does with savepoints, with going back to one, and with what epochs no longer keep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from laminae.catalog.changelog_updates import ForgetChanges, ForgetSegments
from laminae.catalog.updates import AdvanceOwner, DropSavepoint, NextEpoch, PutSavepoint, Rewind, SetSinkProgress
from laminae.errors import DuplicateObject, InvalidName, UnknownObject
from tests.support.catalogs import NOON, columns, drop, epoch, made, sink, view

if TYPE_CHECKING:
    from laminae.catalog import Catalog


def test_a_savepoint_pins_the_last_committed_epoch(catalog: Catalog) -> None:
    source = made(catalog, "s")
    catalog.commit([epoch(source, 0)])
    assert catalog.commit([PutSavepoint("before", NOON)]).ids == (1,)
    catalog.commit([epoch(source, 1)])
    (found,) = catalog.savepoints()
    assert (found.name, found.epoch, found.created_at) == ("before", 1, NOON)


def test_a_savepoint_of_an_empty_home_is_the_beginning(catalog: Catalog) -> None:
    assert catalog.commit([PutSavepoint("start", NOON)]).ids == (0,)


def test_a_savepoint_has_a_name_of_its_own(catalog: Catalog) -> None:
    catalog.commit([PutSavepoint("a", NOON)])
    with pytest.raises(DuplicateObject):
        catalog.commit([PutSavepoint("a", NOON)])
    with pytest.raises(InvalidName):
        catalog.commit([PutSavepoint("", NOON)])


def test_a_dropped_savepoint_is_gone(catalog: Catalog) -> None:
    catalog.commit([PutSavepoint("a", NOON)])
    catalog.commit([DropSavepoint("a")])
    assert catalog.savepoints() == ()
    with pytest.raises(UnknownObject):
        catalog.commit([DropSavepoint("a")])


def test_going_back_undoes_later_epochs_and_gives_no_number_out_again(catalog: Catalog) -> None:
    source = made(catalog, "s")
    catalog.commit([epoch(source, 0)])
    catalog.commit([PutSavepoint("a", NOON)])
    catalog.commit([epoch(source, 1)])
    catalog.commit([PutSavepoint("later", NOON)])
    assert catalog.commit([Rewind("a")]).ids == (1,)
    assert [found.batch_id for found in catalog.epochs(source.id)] == [0]
    assert [found.name for found in catalog.savepoints()] == ["a"]
    assert catalog.commit([epoch(source, 1)]).ids == (3,)


def test_going_back_to_nowhere_changes_nothing(catalog: Catalog) -> None:
    source = made(catalog, "s")
    catalog.commit([epoch(source, 0)])
    with pytest.raises(UnknownObject):
        catalog.commit([Rewind("nowhere")])
    assert len(catalog.epochs(source.id)) == 1


def test_what_a_later_epoch_replayed_waits_again(catalog: Catalog) -> None:
    source = made(catalog, "s")
    catalog.commit([replace(epoch(source, 0), dead_letters=2, dead_letter_segment="d")])
    catalog.commit([PutSavepoint("a", NOON)])
    catalog.commit([replace(epoch(source, -2), replays=(1,))])
    assert catalog.dead_letter_epochs(source.id) == ()
    catalog.commit([Rewind("a")])
    assert [found.epoch for found in catalog.dead_letter_epochs(source.id)] == [1]


def test_every_sink_takes_back_what_is_after_the_savepoint_and_one_that_began_later_begins_anew(
    catalog: Catalog,
) -> None:
    source = made(catalog, "s")
    catalog.commit([epoch(source, 0)])
    catalog.commit([replace(sink(name), state="creating") for name in ("near", "far", "late", "unborn")])
    catalog.commit([PutSavepoint("a", NOON), epoch(source, 1)])
    ids = {found.name: found.id for found in catalog.sinks()}
    catalog.commit([SetSinkProgress(ids[name], 0, "live") for name in ("near", "far")])
    catalog.commit([SetSinkProgress(ids["late"], 2, "creating")])
    progress = {"near": 1, "far": 2, "late": 2}
    catalog.commit([SetSinkProgress(ids[name], number, "live") for name, number in progress.items()])
    assert {found.name: found.began for found in catalog.sinks()} == {"near": 0, "far": 0, "late": 2, "unborn": None}
    catalog.commit([Rewind("a")])
    assert {found.name: (found.progress, found.began) for found in catalog.sinks()} == {
        "near": (1, 0),
        "far": (1, 0),
        "late": (0, None),
        "unborn": (0, None),
    }
    assert {found.state for found in catalog.sinks()} == {"rewinding"}


def test_forgotten_segments_leave_the_epoch_and_its_counts(catalog: Catalog) -> None:
    source = made(catalog, "s")
    catalog.commit([replace(epoch(source, 0), segment="x", dead_letters=1, dead_letter_segment="y")])
    catalog.commit([ForgetSegments((1,))])
    (found,) = catalog.epochs(source.id)
    assert (found.segment, found.dead_letter_segment, found.dead_letters) == (None, "y", 1)
    catalog.commit([ForgetSegments((1,), dead_letters=True)])
    assert catalog.epochs(source.id)[0].dead_letter_segment is None


def test_dropped_sources_are_known_by_their_ids(catalog: Catalog) -> None:
    source = made(catalog, "s")
    assert catalog.dropped_sources() == ()
    catalog.commit([drop("source", source.id)])
    assert catalog.dropped_sources() == (source.id,)


def test_a_changelog_that_is_no_longer_kept_leaves_its_counts(catalog: Catalog) -> None:
    (owner,) = catalog.commit([view("v")]).ids
    for expected, file in ((0, "a"), (1, "b")):
        advance = AdvanceOwner(owner, "v", expected, (), (file,), 3, columns("id"))
        catalog.commit([NextEpoch(), advance])
    catalog.commit([ForgetChanges(owner, (1,))])
    assert [(each.epoch, each.files, each.rows) for each in catalog.advances(owner)] == [(1, (), 3), (2, ("b",), 3)]


def test_rows_that_a_view_set_aside_are_named_and_counted(catalog: Catalog) -> None:
    (owner,) = catalog.commit([view("v")]).ids
    for expected, rows, file in ((0, 2, "x"), (1, 1, "y")):
        advance = AdvanceOwner(owner, "v", expected, (), (), 0, columns("id"), refused=rows, refused_files=(file,))
        catalog.commit([NextEpoch(), advance])
    assert [each.refused_files for each in catalog.advances(owner)] == [("x",), ("y",)]
    assert (catalog.refused(owner), catalog.refused(owner + 1)) == (3, 0)
    catalog.commit([ForgetChanges(owner, (), refused=(1,))])
    assert [each.refused_files for each in catalog.advances(owner)] == [(), ("y",)]
    assert catalog.refused(owner) == 3
