"""The durable list of a directory's files: numbered once, in order, and never changed for a number."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from laminae.errors import LogDamaged, SourceUnavailable
from laminae.spark.sources.files.fingerprint import SAMPLED, digest_of
from laminae.spark.sources.files.listing import FileList
from laminae.spark.sources.item_log import CHUNK
from laminae.spark.sources.log_head import LogDirectory

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


def changed(found: FileList) -> str:
    problem = found.problem()
    return "" if problem is None else str(problem)


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        ('{"a": 2}\n', "the same size but different content", "Restore the original file"),
        ('{"a": 1}\n{"a": 2}\n', "appended content is not read", "truncate -s 9"),
        ('{"b": 1}\n{"a": 2}\n', "it has 18 bytes, and had 9", "Restore the original file"),
        ('{"a"', "it has 4 bytes, and had 9", "Restore the original file"),
        ("", "it has 0 bytes, and had 9", "Restore the original file"),
    ],
)
@pytest.mark.parametrize("keeps_time", [True, False])
def test_a_file_with_other_content_than_when_it_was_listed_is_named_with_a_remedy(
    inbox: Path, log: LogDirectory, text: str, reason: str, remedy: str, keeps_time: bool
) -> None:
    put(inbox, "a", text='{"a": 1}\n')
    found = FileList(log, str(inbox))
    found.items(0)
    assert changed(found) == ""
    put(inbox, "a", 0 if keeps_time else 7, text)
    assert reason in changed(found)
    assert remedy in changed(found)
    # By another process, too, and until it is mended.
    assert reason in changed(FileList(log, str(inbox)))
    put(inbox, "a", 9, '{"a": 1}\n')
    assert changed(found) == ""


def test_a_file_that_was_only_touched_moved_away_or_copied_is_the_same(inbox: Path, log: LogDirectory) -> None:
    for name in ("touched", "gone", "empty", "copied"):
        put(inbox, name, text="" if name == "empty" else "{}\n")
    found = FileList(log, str(inbox))
    assert found.items(0) == 4
    os.utime(inbox / "touched", (AT + 9, AT + 9))
    os.utime(inbox / "empty", (AT + 9, AT + 9))
    os.unlink(inbox / "gone")
    shutil.copy(inbox / "copied", inbox / "other")
    os.replace(inbox / "other", inbox / "copied")
    assert changed(found) == ""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file of a few bytes: blocks of 4 bytes, at 0, 8, 16, 24 and 32 of 36."""
    for name, value in (("LARGEST", 20), ("BLOCKS", 5), ("BLOCK", 4)):
        monkeypatch.setattr(f"laminae.spark.sources.files.fingerprint.{name}", value)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("place", [0, 8, 19, 24, 35])
def test_a_large_file_that_was_rewritten_with_its_size_and_time_is_named(
    inbox: Path, log: LogDirectory, place: int
) -> None:
    put(inbox, "a", text="a" * 36)
    found = FileList(log, str(inbox))
    found.items(0)
    put(inbox, "a", 0, "a" * place + "b" + "a" * (35 - place))
    assert "the same size but different content" in changed(found)
    assert "the same size but different content" in changed(FileList(log, str(inbox)))
    # Written again as it was, or copied with its time.
    put(inbox, "a", 0, "a" * 36)
    assert changed(found) == ""


@pytest.mark.usefixtures("small_blocks")
def test_a_large_file_is_known_by_its_time_and_by_its_blocks(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "a", text="a" * 36)
    found = FileList(log, str(inbox))
    found.items(0)
    # Between two blocks nothing is compared: another time must do.
    put(inbox, "a", 1, "a" * 5 + "b" + "a" * 30)
    assert "too large to be compared in full" in changed(found)
    put(inbox, "a", 1, "a" * 40)
    assert "appended content is not read" in changed(found)
    assert "truncate -s 36" in changed(found)
    put(inbox, "a", 1, "b" + "a" * 39)
    assert "it has 40 bytes, and had 36" in changed(found)
    assert "Restore the original file" in changed(found)


def test_the_digest_of_a_large_file_reads_a_bounded_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as writing:
        writing.truncate(1 << 40)
    assert digest_of(str(file), 1 << 40).startswith(SAMPLED)


def test_a_large_file_of_a_list_without_blocks_is_known_by_its_time_alone(
    inbox: Path, log: LogDirectory, small_blocks: None
) -> None:
    put(inbox, "a", text="a" * 36)
    FileList(log, str(inbox)).items(0)
    (chunk,) = Path(log.path).glob("*.jsonl")
    chunk.write_text(json.dumps({**json.loads(chunk.read_text()), "digest": ""}) + "\n")
    put(inbox, "a", 0, "b" * 36)
    assert changed(FileList(log, str(inbox))) == ""
    put(inbox, "a", 1, "a" * 36)
    assert "too large to be compared" in changed(FileList(log, str(inbox)))


def test_entries_of_before_there_were_digests_are_known_by_their_size(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "a", text="abc")
    found = FileList(log, str(inbox))
    found.items(0)
    (chunk,) = Path(log.path).glob("*.jsonl")
    line = json.loads(chunk.read_text())
    text = json.dumps({name: line[name] for name in ("path", "size", "modified")}) + "\n"
    chunk.write_text(text)
    put(inbox, "a", 5, "abd")
    assert changed(FileList(log, str(inbox))) == ""
    put(inbox, "a", 5, "abcd")
    assert "what was appended" in changed(FileList(log, str(inbox)))


def test_a_sub_directory_is_named_and_read_by_the_pattern_that_is_advised(inbox: Path, log: LogDirectory) -> None:
    put(inbox, "a")
    (inbox / "_temporary").mkdir()
    (inbox / ".hidden").mkdir()
    found = FileList(log, str(inbox))
    assert found.items(0) == 1
    assert changed(found) == ""
    (inbox / "sub" / "deeper").mkdir(parents=True)
    put(inbox / "sub" / "deeper", "b")
    assert f"path = '{inbox}/**'" in changed(found)
    both = FileList(LogDirectory("other", str(inbox.parent / "log 2")), str(inbox / "**"))
    assert both.items(0) == 2
    assert sorted(names(both, range(2))) == ["a", "b"]
    assert changed(both) == ""


def test_many_files_are_looked_at_in_turn(inbox: Path, log: LogDirectory, monkeypatch) -> None:
    monkeypatch.setattr("laminae.spark.sources.files.listing.MOST_CHECKED", 2)
    for number in range(5):
        put(inbox, str(number), number)
    found = FileList(log, str(inbox))
    found.items(0)
    assert changed(found) == ""
    put(inbox, "3", 3, "[]\n")
    assert sum(changed(found) != "" for _ in range(3)) >= 1
