"""What a collection may take of a changelog, and above all what it may not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from laminae.catalog.model import AdvanceRecord, SavepointRecord, SinkRecord, ViewRecord
from laminae.catalog.updates import ForgetChanges
from laminae.engine.changes_collection import ChangesFacts, plan_changes_collection
from laminae.engine.collection import GRACE, Stored
from tests.support.catalogs import columns

NOW = datetime(2026, 1, 31, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)


def advance(number, *files):
    known = {"epoch": number, "files": files, "rows": 1, "anomalies": 0, "dropped": 0, "schema": columns("id")}
    known |= {"late_files": (), "refused_files": ()}
    names = AdvanceRecord.__dataclass_fields__
    return AdvanceRecord(**{name: known.get(name) for name in names})


def sink(progress, state="live"):
    return SinkRecord(9, "k", "v", (), state, None, progress, LONG_AGO, 1)


def view(applied, state):
    return ViewRecord(8, "above", "SELECT 1", None, (), state, None, (("v", ()),), LONG_AGO, 1, applied)


def facts(**given):
    known = {
        "owner_id": 7,
        "name": "v",
        "options": (("changelog_retention", "1 day"),),
        "advances": [advance(3, "a"), advance(5, "b"), advance(6), advance(9, "c")],
        "sinks": (),
        "views": (),
        "savepoints": (),
        "settings": {},
        "stored": [Stored("a", 1, LONG_AGO), Stored("b", 1, LONG_AGO), Stored("c", 1, NOW)],
    }
    return ChangesFacts(**{**known, **given})


def plan(**given):
    found = plan_changes_collection(facts(**given), NOW)
    return [removal.path for removal in found.removals], found.forgotten and found.forgotten.epochs


def test_changes_that_are_old_and_that_every_reader_has_go():
    assert plan() == (["a", "b"], (3, 5))
    assert plan(sinks=[sink(5)], views=[view(2, "live")]) == (["a", "b"], (3, 5))
    assert plan_changes_collection(facts(), NOW).forgotten == ForgetChanges(7, (3, 5))


@pytest.mark.parametrize(
    "reader",
    [
        {"sinks": [sink(9), sink(4)]},
        {"views": [view(3, "failed")]},
        {"views": [view(4, "waiting")]},
    ],
    ids=["a sink lags", "a view failed", "a view waits"],
)
def test_changes_that_a_reader_lacks_stay(reader):
    assert plan(**reader) == (["a"], (3,))


@pytest.mark.parametrize(
    "kept",
    [
        {"sinks": [sink(9, "creating")]},
        {"sinks": [sink(9, "rewinding")]},
        {"views": [view(0, "creating")]},
        {"options": ()},
        {"savepoints": [SavepointRecord("s", 5, LONG_AGO)]},
    ],
    ids=["a sink begins", "a sink rewinds", "a view is filled", "seven days", "a savepoint"],
)
def test_changes_that_somebody_may_ask_for_stay(kept):
    young = [Stored("a", 1, NOW - timedelta(days=6)), Stored("b", 1, LONG_AGO)]
    assert plan(**{**kept, "stored": young if "options" in kept else facts().stored}) == ([], None)


def test_what_no_epoch_names_goes_unless_it_may_be_an_attempt_under_way():
    stored = [Stored("old", 1, LONG_AGO), Stored("young", 1, NOW - GRACE / 2)]
    assert plan(stored=stored, advances=()) == (["old"], None)


def set_aside(late="10 days", letters="10 days"):
    """Late rows and dead letters of two epochs: of long ago, and of now."""
    first = replace(advance(3), late_files=("late",), refused_files=("bad",))
    last = replace(advance(9), late_files=("late now",), refused_files=("bad now",))
    stored = [Stored(name, 1, LONG_AGO) for name in ("late", "bad", "stray")]
    stored += [Stored(name, 1, NOW) for name in ("late now", "bad now")]
    kept = {"late_retention": late, "dead_letter_retention": letters}
    settings = {name: value for name, value in kept.items() if value is not None}
    return plan_changes_collection(facts(advances=[first, last], stored=stored, settings=settings), NOW)


def test_late_rows_and_dead_letters_of_a_view_go_when_they_are_older_than_they_are_kept():
    found = set_aside()
    taken = {removal.path: removal.kind for removal in found.removals}
    assert taken == {"late": "late rows", "bad": "dead letters", "stray": "orphan"}
    assert found.forgotten == ForgetChanges(7, (), (3,), (3,))


def test_each_of_them_has_its_own_retention_and_none_means_for_ever():
    assert [removal.path for removal in set_aside(late=None).removals] == ["bad", "stray"]
    assert [removal.path for removal in set_aside(letters=None).removals] == ["late", "stray"]
