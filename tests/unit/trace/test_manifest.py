"""Manifests: values with a JSON form, and which files they keep alive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from laminae.errors import NewerHome, RunDamaged
from laminae.trace.manifest import Manifest, RunEntry, orphans
from laminae.trace.store import StoredFile

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def entry(name: str) -> RunEntry:
    return RunEntry(name, rows=3, dead=1, bytes=100, checksum=7)


def file(name: str, age: timedelta = timedelta(days=1)) -> StoredFile:
    return StoredFile(name, 100, NOW - age)


def test_manifest_survives_a_trip_through_json():
    manifest = Manifest().with_runs("groups", (entry("a"), entry("b"))).with_runs("x", (entry("c"),))
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert manifest.runs("groups") == (entry("a"), entry("b"))
    assert (manifest.paths, manifest.bytes) == ({"a", "b", "c"}, 300)


def test_equal_states_have_equal_texts():
    one = Manifest().with_runs("a", (entry("1"),)).with_runs("b", (entry("2"),))
    other = Manifest().with_runs("b", (entry("2"),)).with_runs("a", (entry("1"),))
    assert one.to_json() == other.to_json()


def test_trace_without_runs_leaves_the_manifest():
    assert Manifest().with_runs("a", (entry("1"),)).with_runs("a", ()) == Manifest()
    assert Manifest().runs("a") == ()


def test_oldest_manifest_is_read():
    text = '{"format":1,"traces":{"groups":[{"bytes":10,"checksum":5,"dead":0,"path":"v/0/a.run","rows":2}]}}'
    assert Manifest.from_json(text).runs("groups") == (RunEntry("v/0/a.run", 2, 0, 10, 5),)


def test_manifest_of_a_newer_laminae_is_refused():
    with pytest.raises(NewerHome, match="format 9"):
        Manifest.from_json('{"format":9,"traces":{}}')


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":1,"traces":{"a":[{"path":"x"}]}}', '{"format":"one"}'])
def test_text_that_is_no_manifest_is_refused(text):
    with pytest.raises(RunDamaged, match="not a manifest"):
        Manifest.from_json(text)


def test_only_files_that_no_living_manifest_names_are_orphans():
    last, savepoint = Manifest().with_runs("a", (entry("new"),)), Manifest().with_runs("a", (entry("old"),))
    files = [file("new"), file("old"), file("between")]
    assert orphans(files, [last, savepoint], NOW) == ("between",)
    assert orphans(files, [last], NOW) == ("between", "old")
    assert orphans(files, [], NOW) == ("between", "new", "old")


def test_young_files_may_belong_to_an_attempt_under_way():
    files = [file("attempt", timedelta(minutes=59)), file("leftover", timedelta(minutes=61))]
    assert orphans(files, [], NOW) == ("leftover",)
    assert orphans(files, [], NOW, grace=timedelta(0)) == ("attempt", "leftover")
