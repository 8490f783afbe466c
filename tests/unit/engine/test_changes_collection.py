"""What a collection may take of a changelog, and above all what it may not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from laminae.catalog.changelog_updates import ForgetChanges
from laminae.catalog.model import AdvanceRecord, CompactedRecord, SavepointRecord, SinkRecord, ViewRecord
from laminae.engine.retention.changelog_retention import ChangesFacts, expired_until, plan_changes_collection
from laminae.engine.retention.source_retention import GRACE, Stored
from tests.support.catalogs import columns

NOW = datetime(2026, 1, 31, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)


def advance(number, *files):
    known = {"epoch": number, "files": files, "rows": 1, "anomalies": 0, "dropped": 0, "schema": columns("id")}
    known |= {"late_files": (), "refused_files": (), "held_files": ()}
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


def test_a_changelog_that_is_the_table_of_its_view_stays():
    assert plan(is_table=True) == ([], None)


def ranges(*given, created_at=LONG_AGO):
    return [CompactedRecord(*each, (f"m{each}/0",), 1, True, created_at, columns("id")) for each in given]


def merged(**given):
    """Paths that go of a changelog that is the table of its view, and the epochs and the ranges that are forgotten."""
    found = plan_changes_collection(facts(is_table=True, **given), NOW)
    replaced = found.replaced and found.replaced.ranges
    return [each.path for each in found.removals], found.forgotten and found.forgotten.epochs, replaced


def test_changes_whose_rows_were_merged_go_as_those_of_other_views_do():
    assert merged(compacted=ranges((3, 5))) == (["a", "b"], (3, 5), None)
    assert merged(compacted=ranges((3, 3))) == (["a"], (3,), None)
    assert merged(compacted=ranges((5, 5))) == ([], None, None)


@pytest.mark.parametrize(
    "kept",
    [
        {"options": ()},
        {"compacted": ranges((3, 5), created_at=NOW - GRACE / 2)},
        {"sinks": [sink(3)]},
        {"sinks": [sink(4)]},
        {"emissions": [4]},
        {"views": [view(3, "waiting")]},
        {"savepoints": [SavepointRecord("s", 5, LONG_AGO)]},
    ],
    ids=["unset", "just merged", "as of a sink", "between", "as of a tick", "as of a view", "savepoint"],
)
def test_changes_that_are_a_table_stay_while_anybody_would_miss_a_row(kept):
    assert merged(**{"compacted": ranges((3, 5)), **kept}) == ([], None, None)


def test_how_long_may_be_set_for_the_home():
    given = {"options": (), "settings": {"changelog_retention": "1 day"}}
    assert merged(compacted=ranges((3, 5)), **given) == (["a", "b"], (3, 5), None)


def test_the_segments_that_a_range_does_not_have_as_of_an_epoch_stay():
    """A sink is at 3: its rows are those of the segment, as the range goes beyond."""
    assert merged(compacted=ranges((3, 5)), sinks=[sink(3)])[1] is None
    assert merged(compacted=ranges((3, 3), (3, 5)), sinks=[sink(3)])[1:] == ((3,), None)


def test_ranges_go_when_a_larger_one_has_their_rows_and_nobody_reads_them():
    known = {"compacted": ranges((3, 3), (5, 9), (3, 9)), "options": ()}
    stored = [Stored(f"m{each}", 1, LONG_AGO) for each in ((3, 3), (5, 9), (3, 9))]
    assert merged(**known, stored=stored) == (["m(3, 3)", "m(5, 9)"], None, ((3, 3), (5, 9)))
    assert merged(**known, stored=stored, savepoints=[SavepointRecord("s", 4, NOW)])[2] == ((5, 9),)
    young = [*known["compacted"][:2], *ranges((3, 9), created_at=NOW - GRACE / 2)]
    assert merged(compacted=young, options=(), stored=stored) == ([], None, None)


def test_files_of_a_merge_that_was_not_committed_go_and_those_of_one_under_way_stay():
    stored = [Stored("m(3, 5)", 1, LONG_AGO), Stored("dead", 1, LONG_AGO), Stored("young", 1, NOW - GRACE / 2)]
    assert merged(compacted=ranges((3, 5)), options=(), stored=stored)[0] == ["dead"]


def test_the_last_epoch_that_retention_wants_to_go_is_known_before_it_is_merged():
    assert expired_until(facts(is_table=True), NOW) == 5
    assert expired_until(facts(is_table=True, sinks=[sink(4)]), NOW) == 3
    assert expired_until(facts(is_table=True, options=()), NOW) == 0
    assert expired_until(facts(), NOW) == 0


def test_changes_that_were_held_back_go_when_a_tick_has_emitted_them():
    held = [replace(advance(number), held_files=(name,)) for number, name in ((3, "a"), (6, "b"), (9, "c"))]
    advances = [*held[:2], replace(advance(7), bound=1), held[2]]
    assert plan_changes_collection(facts(advances=advances), NOW).forgotten == ForgetChanges(7, (), (), (), (3, 6))
    pinned = [SavepointRecord("s", 5, LONG_AGO)]
    assert [
        each.path for each in plan_changes_collection(facts(advances=advances, savepoints=pinned), NOW).removals
    ] == ["b"]
