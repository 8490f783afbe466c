"""The durable list of a directory's files: numbered once, in order, and never changed for a number."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from laminae.errors import LogDamaged, SourceUnavailable
from laminae.spark.logs.entries import CHUNK
from laminae.spark.logs.head import LogDirectory
from laminae.spark.logs.listing import FileList

AT = 1_700_000_000


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    return place


@pytest.fixture
def log(tmp_path: Path) -> LogDirectory:
    return LogDirectory("orders", str(tmp_path / "log"))


def put(place: Path, name: str, second: int = 0, text: str = "{}\n") -> str:
    file = place / name
    file.write_text(text)
    os.utime(file, (AT + second, AT + second))
    return str(file)


def names(found: FileList, items: range) -> list[str]:
    return [os.path.basename(entry.path) for entry in found.entries(items)]


def test_files_are_numbered_by_time_and_then_by_name(inbox: Path, log: LogDirectory) -> None:
    for name, second in (("c", 1), ("a", 2), ("b", 1)):
        put(inbox, name, second)
    found = FileList(log, str(inbox))
    assert found.items(0) == 3
    assert names(found, range(3)) == ["b", "c", "a"]


def test_late_file_with_an_old_time_comes_behind_those_that_were_seen(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "second", 5)
    FileList(log, str(inbox)).items(0)
    put(inbox, "first", 1)
    found = FileList(log, str(inbox))
    assert found.items(1) == 2
    assert names(found, range(2)) == ["second", "first"]


def test_entry_keeps_size_and_time(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "a", text="12345")
    found = FileList(log, str(inbox))
    found.items(0)
    (entry,) = found.entries(range(1))
    assert (entry.item, entry.size, entry.modified) == (0, 5, AT * 1_000_000)


@pytest.mark.parametrize("name", [".hidden", "_SUCCESS", "part.tmp", "a.json._COPYING_"])
def test_unfinished_and_hidden_files_are_left_out(inbox: Path, log: LogDirectory, name: str) -> None:
    put(inbox, name)
    assert FileList(log, str(inbox)).items(0) == 0


def test_directories_are_left_out(inbox: Path, log: LogDirectory) -> None:
    (inbox / "inner").mkdir()
    put(inbox / "inner", "a")
    assert FileList(log, str(inbox)).items(0) == 0


def test_pattern_takes_files_and_the_files_of_directories_it_matches(inbox: Path, log: LogDirectory) -> None:
    for directory in ("x1", "x2", "y"):
        (inbox / directory).mkdir()
        put(inbox / directory, f"{directory}.json")
    put(inbox, "x.json")
    put(inbox, "y.json")
    found = FileList(log, str(inbox / "x*"))
    assert found.items(0) == 3
    assert names(found, range(3)) == ["x.json", "x1.json", "x2.json"]


def test_directory_with_a_star_in_its_name_is_a_directory(inbox: Path, log: LogDirectory) -> None:
    (inbox / "a*[b]").mkdir()
    put(inbox / "a*[b]", "a.json")
    assert FileList(log, str(inbox / "a*[b]")).items(0) == 1


def test_vanished_directory_is_unavailable_until_it_is_back(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "a")
    found = FileList(log, str(inbox))
    found.items(0)
    shutil.move(inbox, inbox.with_name("away"))
    with pytest.raises(SourceUnavailable, match="orders") as gone:
        found.items(1)
    assert gone.value.params["location"] == str(inbox)
    shutil.move(inbox.with_name("away"), inbox)
    put(inbox, "b")
    assert found.items(1) == 2


def test_pattern_below_a_vanished_directory_is_unavailable(tmp_path: Path, log: LogDirectory) -> None:
    with pytest.raises(SourceUnavailable):
        FileList(log, str(tmp_path / "none" / "*.json")).items(0)


def test_two_lists_of_one_log_number_a_file_once(inbox: Path, log: LogDirectory) -> None:
    one, other = FileList(log, str(inbox)), FileList(log, str(inbox))
    put(inbox, "a")
    assert (one.items(0), other.items(0)) == (1, 1)
    put(inbox, "b")
    assert (other.items(0), one.items(0)) == (2, 2)
    assert names(one, range(2)) == names(other, range(2)) == ["a", "b"]


def test_list_grows_over_several_chunks(inbox: Path, log: LogDirectory) -> None:
    for number in range(CHUNK + 5):
        put(inbox, f"{number:05}")
        if number in (3, CHUNK - 1):
            FileList(log, str(inbox)).items(0)
    found = FileList(log, str(inbox))
    assert found.items(0) == CHUNK + 5
    assert names(found, range(CHUNK - 1, CHUNK + 2)) == ["00999", "01000", "01001"]
    assert names(found, range(CHUNK + 5)) == [f"{number:05}" for number in range(CHUNK + 5)]


def test_lines_that_the_head_does_not_count_are_written_over(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "a")
    FileList(log, str(inbox)).items(0)
    with Path(log.path, "000000000000.jsonl").open("a") as orphan:
        orphan.write('{"path": "/lost", "size": 1, "mod')
    put(inbox, "b")
    found = FileList(log, str(inbox))
    assert found.items(0) == 2
    assert names(found, range(2)) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "not json\n", '{"path": "/a"}\n'])
def test_damaged_list_is_named(inbox: Path, log: LogDirectory, text: str) -> None:
    put(inbox, "a")
    FileList(log, str(inbox)).items(0)
    file = Path(log.path, "000000000000.jsonl")
    file.write_text(text)
    with pytest.raises(LogDamaged) as found:
        FileList(log, str(inbox)).items(0)
    assert found.value.params["file"] == str(file)


def test_missing_list_is_named(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "a")
    FileList(log, str(inbox)).items(0)
    Path(log.path, "000000000000.jsonl").unlink()
    with pytest.raises(LogDamaged, match=r"000000000000\.jsonl"):
        FileList(log, str(inbox)).items(0)
