"""The head of a log: what it counts exists, what lies behind it does not, and damage has a name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from laminae.errors import HomeUnwritable, LogDamaged, NewerHome, NotAvailable
from laminae.spark.catalyst.streaming.micro_batch_stream import offset_text
from laminae.spark.sources.log_head import Head, LogDirectory, log_directory

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def log(tmp_path: Path) -> LogDirectory:
    return log_directory("orders", 7, str(tmp_path))


def test_log_lives_below_the_home_by_the_sources_incarnation(tmp_path: Path) -> None:
    assert log_directory("orders", 7, str(tmp_path)).path == str(tmp_path / "sources" / "7" / "log")


def test_log_of_a_new_source_is_empty_and_writes_nothing(log: LogDirectory) -> None:
    assert log.head() == Head(0, 0)
    assert not Path(log.path).exists()


def test_published_head_is_read_again(log: LogDirectory) -> None:
    with log.writing() as head:
        log.publish(Head(head.items + 1, 5))
    assert LogDirectory("orders", log.path).head() == Head(1, 5)


def test_offset_is_the_text_that_spark_stores() -> None:
    assert offset_text(3) == '{"item": 3}'


def remove(head: Path) -> None:
    head.unlink()


def empty(head: Path) -> None:
    head.write_bytes(b"")


def cut(head: Path) -> None:
    head.write_bytes(head.read_bytes()[:-5])


def lie(head: Path) -> None:
    head.write_text('{"format": 1, "items": "many", "extent": 0}')


@pytest.mark.parametrize("harm", [remove, empty, cut, lie])
def test_damaged_head_is_named(log: LogDirectory, harm: Callable[[Path], None]) -> None:
    with log.writing():
        Path(log.path, "000000000000.parquet").touch()
        log.publish(Head(1, 1))
    harm(Path(log.head_file))
    with pytest.raises(LogDamaged) as found:
        log.head()
    assert found.value.params["file"] == log.head_file
    with pytest.raises(LogDamaged), log.writing():
        pass


def test_head_of_a_newer_laminae_is_refused(log: LogDirectory) -> None:
    with log.writing():
        Path(log.head_file).write_text('{"format": 2, "items": 0, "extent": 0}')
    with pytest.raises(NewerHome):
        log.head()


def test_log_that_lost_items_is_damaged(log: LogDirectory) -> None:
    with log.writing():
        log.publish(Head(2, 2))
    assert log.items(2) == 2
    with pytest.raises(LogDamaged, match="3 were there before"):
        log.items(3)


def test_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "sources").write_text("in the way")
    with pytest.raises(HomeUnwritable, match="sources"), log_directory("orders", 7, str(tmp_path)).writing():
        pass


def test_home_on_no_file_system_of_this_machine_has_no_log() -> None:
    with pytest.raises(NotAvailable):
        log_directory("orders", 7, "s3://bucket/home")
