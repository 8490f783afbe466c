"""What a collection may take of a changelog, and above all what it may not."""

from __future__ import annotations

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
