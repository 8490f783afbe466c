"""Files that survive a crash of the machine, and the name of the file in every failure."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from laminae import durable
from laminae.errors import HomeUnwritable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes that were fsynced, in order."""
    inodes: list[int] = []
    fsync = os.fsync

    def recorded(handle: int) -> None:
        inodes.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    return inodes


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)


def inodes(*paths: Path) -> list[int]:
    return [path.stat().st_ino for path in paths]


def test_new_file_is_synced_before_its_entry(tmp_path: Path, synced: list[int]) -> None:
    file = tmp_path / "file"
    with durable.create(str(file)) as out:
        out.write(b"content")
    assert file.read_bytes() == b"content"
    assert synced == inodes(file, tmp_path)


def test_file_is_never_created_twice(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"first")
    with pytest.raises(FileExistsError), durable.create(str(file)):
        pass
    assert file.read_bytes() == b"first"


def test_replaced_file_is_synced_before_it_takes_its_name(tmp_path: Path, synced: list[int]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with durable.replace(str(file)) as out:
        out.write(b"new")
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"
    assert synced == inodes(file, tmp_path)
    assert os.listdir(tmp_path) == ["file"]


def test_replacement_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with pytest.raises(TypeError), durable.replace(str(file)) as out:
        out.writelines([b"half of the ne", None])  # type: ignore[list-item]  # the writer fails in the middle
    assert file.read_bytes() == b"old"


def test_file_is_overwritten_from_a_position_to_its_end(tmp_path: Path, synced: list[int]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    with durable.overwrite(str(file), 4) as out:
        out.write(b"ab")
    assert file.read_bytes() == b"0123ab"
    assert synced == inodes(file)


def test_entry_of_every_new_directory_is_synced(tmp_path: Path, synced: list[int]) -> None:
    durable.make_directory(str(tmp_path / "a/b"))
    assert synced == inodes(tmp_path, tmp_path / "a")
    durable.make_directory(str(tmp_path / "a/b"))
    assert len(synced) == 2


def test_directory_of_a_relative_path_is_created_in_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    durable.make_directory("a")
    with durable.create("b"):
        pass
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_tree_is_synced_up_to_its_root_and_the_upper_directories_once(tmp_path: Path, synced: list[int]) -> None:
    root = tmp_path / "home"
    first, second = root / "sources/1/rows/a", root / "sources/1/rows/b"
    for directory in (first, second):
        directory.mkdir(parents=True)
        (directory / "part.parquet").write_bytes(b"rows")
        (directory / "_SUCCESS").write_bytes(b"")
    durable.sync_tree(first, "*.parquet", root)
    rows = root / "sources/1/rows"
    assert synced == inodes(first / "part.parquet", first, rows, root / "sources/1", root / "sources", root)
    synced.clear()
    durable.sync_tree(second, "*.parquet", root)
    assert synced == inodes(second / "part.parquet", second, rows)


def created(path: Path) -> None:
    with durable.create(str(path)) as out:
        out.write(b"content")


def replaced(path: Path) -> None:
    with durable.replace(str(path)) as out:
        out.write(b"content")


def overwritten(path: Path) -> None:
    with durable.overwrite(str(path)) as out:
        out.write(b"content")


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("write", [created, replaced, overwritten])
def test_full_disk_is_told_with_the_file(tmp_path: Path, write: Callable[[Path], None]) -> None:
    """An fsync fails without a file name."""
    file = tmp_path / "file"
    with pytest.raises(HomeUnwritable) as raised, durable.home_errors(str(tmp_path)):
        write(file)
    assert raised.value.params == {"location": str(file), "problem": "No space left on device"}


@pytest.mark.usefixtures("full_disk")
def test_full_disk_is_told_with_the_directory_that_cannot_be_synced(tmp_path: Path) -> None:
    with pytest.raises(HomeUnwritable) as raised, durable.home_errors("the home"):
        durable.make_directory(str(tmp_path / "a"))
    assert raised.value.params["location"] == str(tmp_path)


@pytest.mark.parametrize("write", [created, replaced, overwritten])
def test_directory_that_is_missing_is_told_with_the_file(tmp_path: Path, write: Callable[[Path], None]) -> None:
    file = tmp_path / "missing/file"
    with pytest.raises(HomeUnwritable, match="No such file or directory") as raised, durable.home_errors("the home"):
        write(file)
    assert raised.value.params["location"].startswith(str(file))


def test_file_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(HomeUnwritable) as raised, durable.home_errors("the home"):
        durable.make_directory(str(tmp_path / "a/b"))
    assert raised.value.params["location"] == str(tmp_path / "a")


def test_error_without_a_number_keeps_its_text(tmp_path: Path) -> None:
    expected = pytest.raises(HomeUnwritable, match="a text alone")
    with expected as raised, durable.home_errors("the home"), durable.replace(str(tmp_path / "file")):
        raise OSError("a text alone")
    assert raised.value.params["location"] == "the home"
