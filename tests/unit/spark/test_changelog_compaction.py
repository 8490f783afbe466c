"""Merging the changelog of a view: how many files are opened, what retention takes, and what a crash leaves.

At the level of catalog and files: epochs are written by the test.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from math import log2
from pathlib import Path

import pytest

from laminae.catalog import open_catalog
from laminae.catalog.updates import PutSink, SetSinkProgress
from laminae.engine import faults
from laminae.engine.retention.changelog_compaction import LEAST_SEGMENTS, Limits, pieces_of
from laminae.errors import ChangelogExpired, ConcurrentChange
from laminae.spark.driver import changelog_compaction as compaction
from laminae.spark.driver.changelog_compaction import Compactor, Merger, summed_views
from laminae.spark.driver.storage import Storage
from laminae.spark.views.reading.changes import kept_changes
from tests.support.summed_views import START, SummedView


@pytest.fixture
def view(tmp_path):
    found = SummedView(tmp_path / "home")
    yield found
    faults.clear()
    found.db.close()


def emit(view, count, weight=1, b="x"):
    for number in range(count):
        view.emit(({"a": number, "b": b}, weight))


def merge_all(view):
    while view.merge():
        pass


def test_a_select_opens_a_bounded_number_of_files(view):
    opened = []
    compactor = Compactor(view.merger)
    for _ in range(300):
        emit(view, 1)
        compactor.pump()
        opened.append(len(view.files()))
    assert max(opened) < LEAST_SEGMENTS + log2(300)
    assert len(view.catalog.advances(view.view.id)) == 300
    assert view.rows() == view.expected()


def test_a_driver_leaves_large_segments_to_a_collection(view, monkeypatch):
    monkeypatch.setattr(compaction, "SMALL", Limits(rows=39))
    view.emit(*[({"a": n, "b": "x"}, 1) for n in range(40)])
    emit(view, 2 * LEAST_SEGMENTS)
    compactor = Compactor(view.merger)
    compactor.pump()
    assert [piece.rows for piece in pieces_of(view.catalog, view.view.id)][:3] == [40, 39, 1]
    emit(view, LEAST_SEGMENTS)
    view.gc()
    assert len(view.files()) == 1
    assert view.rows() == view.expected()


def test_a_driver_looks_at_the_changelogs_once_in_so_many_epochs(view, monkeypatch):
    compactor, looks = Compactor(view.merger), []
    read = view.catalog.compacted
    monkeypatch.setattr(view.catalog, "compacted", lambda *args: looks.append(args) or read(*args))
    for _ in range(LEAST_SEGMENTS - 1):
        emit(view, 1)
        compactor.pump()
    assert len(looks) == 1
    emit(view, 1)
    compactor.pump()
    assert len(view.files()) == LEAST_SEGMENTS
    emit(view, 1)
    compactor.pump()
    assert len(view.files()) == 1


def test_changes_stay_from_the_first_epoch_unless_somebody_sets_how_long(view):
    emit(view, 2 * LEAST_SEGMENTS)
    for _ in range(3):
        view.pass_time(days=30)
        assert view.gc() == set()
    assert len(view.files()) == 1
    assert len(kept_changes(view.catalog, view.view, 0)) == 2 * LEAST_SEGMENTS
    assert all((view.home / file).exists() for each in view.catalog.advances(view.view.id) for file in each.files)


def test_retention_takes_old_changes_once_their_rows_are_merged_and_nobody_opens_them(view):
    view.keep_changes_for("1 day")
    emit(view, 3)
    view.pass_time(days=2)
    last = view.emit(({"a": 0, "b": "x"}, -1))
    assert view.gc(dry_run=True) == view.gc() == set()
    view.pass_time(minutes=30)
    assert view.gc() == set()
    view.pass_time(hours=1)
    assert {kind for kind, _ in view.gc()} == {"changes"}
    with pytest.raises(ChangelogExpired) as expired:
        kept_changes(view.catalog, view.view, 0)
    assert "3" in str(expired.value)
    assert [each.epoch for each in kept_changes(view.catalog, view.view, 3)] == [last]
    assert view.rows() == view.expected()


def test_how_long_is_set_by_the_option_of_the_view_or_for_the_home(tmp_path):
    view = SummedView(tmp_path / "home", options="WITH (changelog_retention = '1 day')")
    assert [each.name for each in summed_views(view.catalog)] == ["v"]
    emit(view, 2)
    view.pass_time(days=2)
    view.gc()
    assert len(view.catalog.compacted(view.view.id)) == 1
    view.db.close()


def test_what_a_sink_lacks_or_may_have_to_take_back_stays(view):
    view.keep_changes_for("1 day")
    sink = view.catalog.commit([PutSink("k", "v", (("connector", "console"),), "live", START)]).ids[0]
    emit(view, 5)
    view.catalog.commit([SetSinkProgress(sink, 3, "live")])
    view.pass_time(days=2)
    view.gc()
    view.pass_time(hours=2)
    view.gc()
    assert view.rows(3) == view.expected(3)
    assert [each.epoch for each in kept_changes(view.catalog, view.view, 3)] == [4, 5]
    assert view.rows() == view.expected()


def test_a_savepoint_within_a_merged_range_gives_the_rows_of_its_epoch(view):
    view.keep_changes_for("1 hour")
    emit(view, LEAST_SEGMENTS)
    merge_all(view)
    view.pass_time(hours=3)
    view.gc()
    assert view.gc() == set()
    emit(view, 5, b="y")
    view.savepoint("p")
    emit(view, 3 * LEAST_SEGMENTS, weight=-1)
    for _ in range(3):
        merge_all(view)
        view.pass_time(hours=3)
        view.gc()
    assert len(view.files()) == 1
    view.restore("p")
    assert view.rows() == view.expected()
    emit(view, LEAST_SEGMENTS, b="z")
    merge_all(view)
    assert view.rows() == view.expected()


def test_a_merge_crosses_renames_new_columns_and_wider_types_but_no_change_of_a_nested_type(tmp_path):
    view = SummedView(tmp_path / "home", "a INT, b STRUCT<x: INT>")
    view.emit(*[({"a": n, "b": {"x": n}}, 1) for n in range(3)])
    view.db.sql("ALTER SOURCE s RENAME COLUMN a TO z")
    view.db.sql("ALTER SOURCE s ADD COLUMN c BIGINT DEFAULT 7")
    view.emit(({"z": 0, "b": {"x": 0}, "c": 7}, -1))
    view.db.sql("ALTER SOURCE s ALTER COLUMN z TYPE BIGINT")
    view.emit(({"z": 2**40, "b": None, "c": None}, 1))
    view.merge(due=3)
    assert [(each.first, each.last, each.rows) for each in view.catalog.compacted(view.view.id)] == [(1, 3, 3)]
    assert view.rows() == view.expected()
    view.db.sql("ALTER SOURCE s ADD COLUMN b.y INT")
    emit(view, 1, b=None)
    view.emit(({"z": 1, "b": {"x": 1, "y": None}, "c": 7}, -1))
    view.merge(due=9)
    assert [(each.first, each.last) for each in view.catalog.compacted(view.view.id)] == [(1, 3), (4, 5)]
    view.db.close()


class Crash(Exception):
    pass


def crash():
    raise Crash


@pytest.mark.parametrize("point", faults.MERGE_POINTS)
def test_a_failure_at_any_step_leaves_the_view_right_and_the_next_collection_ends_it(view, point):
    view.keep_changes_for("1 hour")
    emit(view, 2 * LEAST_SEGMENTS)
    view.pass_time(hours=3)
    view.gc()
    emit(view, 2 * LEAST_SEGMENTS, weight=-1, b="x")
    view.pass_time(hours=3)
    faults.install(point, crash)
    with pytest.raises(Crash):
        view.gc()
    assert view.rows() == view.expected()
    faults.clear()
    for _ in range(2):
        view.pass_time(hours=3)
        for file in (view.home / "sources").rglob("*"):
            os.utime(file, (START.timestamp(), START.timestamp()))
        view.gc()
    assert view.rows() == view.expected()
    assert on_disk(view) == {each for record in view.catalog.compacted(view.view.id) for each in record.files}


def on_disk(view):
    """Files of the changelog and of its merged ranges."""
    return {str(file.relative_to(view.home)) for file in (view.home / "sources").rglob("*.parquet")}


def merge_and_be_killed(home, point):
    catalog = open_catalog(home)
    faults.install(point, lambda: os.kill(os.getpid(), signal.SIGKILL))
    Merger(catalog, Storage(Path(home)), lambda: START).merge_all(catalog.view("v"))


@pytest.mark.parametrize("point", faults.MERGE_POINTS[:3])
def test_a_killed_merge_is_done_or_not_done(view, point):
    emit(view, LEAST_SEGMENTS)
    process = multiprocessing.get_context("spawn").Process(target=merge_and_be_killed, args=(str(view.home), point))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(view.catalog.compacted(view.view.id)) == (point == "merge committed")
    assert view.rows() == view.expected()
    merge_all(view)
    assert len(view.files()) == 1
    assert view.rows() == view.expected()


@pytest.mark.parametrize("other", ["merged", "undone"])
def test_a_merge_that_was_overtaken_changes_nothing(view, other):
    emit(view, 2)
    view.savepoint("p")
    emit(view, LEAST_SEGMENTS)

    def overtake():
        faults.clear()
        if other == "merged":
            merge_all(view)
        else:
            view.restore("p")

    faults.install("merge written", overtake)
    with pytest.raises(ConcurrentChange):
        view.merge()
    assert view.rows() == view.expected()
    assert len(view.catalog.compacted(view.view.id)) == (other == "merged")


def test_a_driver_and_collections_merge_beside_each_other(view):
    """Two of them at once: each merge is made by one of them, and nothing twice."""
    emit(view, 3 * LEAST_SEGMENTS)
    merger = view.merger
    workers = [threading.Thread(target=merger.merge_all, args=(view.view,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    merge_all(view)
    assert view.rows() == view.expected()


def test_a_segment_that_cannot_be_read_stops_neither_a_driver_nor_a_collection(view, caplog):
    emit(view, LEAST_SEGMENTS)
    (view.home / view.files()[3]).write_bytes(b"no parquet")
    Compactor(view.merger).pump()
    view.gc()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "the changelog of v is not merged" in caplog.text
    assert len(view.files()) == LEAST_SEGMENTS
    assert on_disk(view) == set(view.files())
