"""What a collection may take, and above all what it may not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from laminae.catalog.changelog_updates import ForgetSegments
from laminae.catalog.model import EpochRecord, SavepointRecord, SinkRecord, SourceRecord
from laminae.engine.options.rows import duration
from laminae.engine.retention.source_retention import GRACE, SourceFacts, Stored, plan_collection

NOW = datetime(2026, 1, 31, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)
KEEP_A_DAY = {"changelog_retention": "1 day", "dead_letter_retention": "1 day", "spool_retention": "1 day"}


def source(**options):
    schema = pa.schema([("id", pa.int64())])
    return SourceRecord(1, "s", 1, schema, 2, tuple(options.items()), (), None, None, LONG_AGO, 1)


def epoch(number, committed_at=LONG_AGO, segment="segments/a", letters=None, replayed_by=None):
    return EpochRecord(
        number, 1, number, "0", "1", 1, 5, committed_at, segment, 1 if letters else 0, letters, replayed_by
    )


def sink(progress, state="live"):
    return SinkRecord(9, "k", "s", (), state, None, progress, LONG_AGO, 1)


def facts(**given):
    known = {
        "epochs": (),
        "sinks": (),
        "savepoints": (),
        "settings": KEEP_A_DAY,
        "stored": (),
        "items": {},
        "places": (),
    }
    return SourceFacts(**{"source": source(), **known, **given})


def stored(path, modified=LONG_AGO):
    return Stored(path, 10, modified)


def taken(found, kind=None):
    return [removal.path for removal in found.removals if kind in (None, removal.kind)]


def test_rows_that_every_sink_has_go_when_changes_are_no_longer_kept():
    found = plan_collection(facts(epochs=[epoch(3)], sinks=[sink(3)], stored=[stored("segments/a")]), NOW)
    assert taken(found, "delivered") == ["segments/a"]
    assert found.forgotten == (ForgetSegments((3,)),)


@pytest.mark.parametrize(
    "kept",
    [
        facts(epochs=[epoch(3)], sinks=[sink(3), sink(2)], stored=[stored("segments/a")]),
        facts(epochs=[epoch(3)], sinks=[sink(9, "creating")], stored=[stored("segments/a")]),
        facts(epochs=[epoch(3)], sinks=[sink(9, "rewinding")], stored=[stored("segments/a")]),
        facts(epochs=[epoch(3, NOW - timedelta(hours=2))], sinks=[sink(3)], stored=[stored("segments/a")]),
    ],
    ids=["a sink lags", "a sink begins", "a sink rewinds", "young"],
)
def test_rows_that_somebody_needs_stay(kept):
    assert plan_collection(kept, NOW).removals == ()


def test_what_no_epoch_names_goes_unless_it_may_be_an_attempt_under_way():
    young = stored("segments/young", NOW - GRACE / 2)
    found = plan_collection(facts(stored=[stored("segments/old"), young, stored("checkpoint.replaced-1")]), NOW)
    assert taken(found, "orphan") == ["segments/old", "checkpoint.replaced-1"]


def test_dead_letters_go_after_their_time():
    found = plan_collection(facts(epochs=[epoch(1, segment=None, letters="d")], stored=[stored("d")]), NOW)
    assert taken(found) == ["d"]
    assert found.forgotten == (ForgetSegments((1,), dead_letters=True),)


@pytest.mark.parametrize(
    "kept",
    [
        facts(epochs=[epoch(1, segment=None, letters="d", replayed_by=2)], stored=[stored("d")]),
        facts(epochs=[epoch(1, segment=None, letters="d")], stored=[stored("d")], settings={}),
        facts(
            epochs=[epoch(1, segment=None, letters="d")],
            stored=[stored("d")],
            savepoints=[SavepointRecord("p", 1, NOW)],
        ),
    ],
    ids=["they became rows", "kept for ever", "pinned"],
)
def test_dead_letters_that_are_read_or_pinned_stay(kept):
    assert plan_collection(kept, NOW).removals == ()


ITEMS = {number: stored(f"log/{number}") for number in range(4)} | {4: stored("log/4", NOW)}


def test_pushed_rows_go_when_they_are_old_and_read():
    found = plan_collection(facts(items=ITEMS, places=[3]), NOW)
    assert (taken(found, "spool"), found.floor) == (["log/0", "log/1", "log/2"], 3)


def test_a_savepoint_keeps_the_rows_behind_it():
    assert plan_collection(facts(items=ITEMS, places=[3, 1]), NOW).floor == 1


def test_an_item_in_the_middle_does_not_go_before_older_ones():
    items = {0: stored("log/0", NOW), 1: stored("log/1")}
    assert plan_collection(facts(items=items, places=[2]), NOW).floor is None


def test_a_source_that_has_read_nothing_loses_nothing():
    assert plan_collection(facts(items=ITEMS, places=[0]), NOW).removals == ()


def test_an_option_of_the_source_goes_before_the_setting_of_the_home():
    found = plan_collection(facts(source=source(spool_retention="60 days"), items=ITEMS, places=[3]), NOW)
    assert found.floor is None


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1 week", timedelta(weeks=1)),
        ("1.5 Hours", timedelta(minutes=90)),
        ("20milliseconds", timedelta(milliseconds=20)),
        (" 2 days ", timedelta(days=2)),
    ],
)
def test_durations_are_time_spans(text, span):
    assert duration(text) == span
