"""What the stream reader answers to Spark, without Spark."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from laminae.errors import LogDamaged, SourceUnavailable
from laminae.spark.logs.numbered import NumberedLog
from laminae.spark.logs.stream import LogReader
from laminae.spark.logs.tails import ClockTail, open_tail

GONE = SourceUnavailable(source="orders", location="/in", problem="No such file or directory")


@dataclass
class FakeTail:
    there: int | Exception

    def items(self, seen: int) -> int:
        if isinstance(self.there, Exception):
            raise self.there
        return self.there


def latest(reader: LogReader, seen: int) -> int:
    return reader.latestOffset({"item": seen}, reader.getDefaultReadLimit())["item"]


def test_stream_begins_before_the_first_item() -> None:
    assert LogReader(FakeTail(5), None).initialOffset() == {"item": 0}


def test_offset_is_what_is_there() -> None:
    assert latest(LogReader(FakeTail(5), None), 2) == 5


def test_offset_moves_by_the_limit_at_most() -> None:
    reader = LogReader(FakeTail(5), 2)
    assert reader.getDefaultReadLimit() == ReadMaxFiles(2)
    assert [latest(reader, seen) for seen in (0, 2, 4, 5)] == [2, 4, 5, 5]


def test_limit_gives_way_when_spark_asks_for_all() -> None:
    assert LogReader(FakeTail(5), 2).latestOffset({"item": 0}, ReadAllAvailable()) == {"item": 5}


def test_bounded_run_ends_where_the_log_ended_when_it_began() -> None:
    tail = FakeTail(3)
    reader = LogReader(tail, 2)
    reader.prepareForTriggerAvailableNow()
    tail.there = 9
    assert [latest(reader, seen) for seen in (0, 2, 3)] == [2, 3, 3]


def test_unavailable_source_waits_and_goes_on() -> None:
    tail = FakeTail(GONE)
    reader = LogReader(tail, None)
    assert latest(reader, 2) == 2
    tail.there = 3
    assert latest(reader, 2) == 3


def test_unavailable_source_fails_a_bounded_run() -> None:
    with pytest.raises(SourceUnavailable):
        LogReader(FakeTail(GONE), None).prepareForTriggerAvailableNow()


def test_damaged_log_does_not_wait() -> None:
    with pytest.raises(LogDamaged):
        latest(LogReader(FakeTail(LogDamaged(source="orders", file="head.json", problem="cut")), None), 2)


def test_log_that_lost_items_fails_a_bounded_run(tmp_path: os.PathLike[str]) -> None:
    reader = LogReader(open_tail({"connector": "push", "source": "orders", "directory": str(tmp_path)}), None)
    reader.prepareForTriggerAvailableNow()
    with pytest.raises(LogDamaged, match="4 were there before"):
        latest(reader, 4)


def test_rows_are_never_read() -> None:
    assert LogReader(FakeTail(5), None).partitions({"item": 0}, {"item": 5}) == []


def test_clock_set_back_makes_a_rate_wait() -> None:
    assert ClockTail(created=2**62).items(7) == 7


def test_reader_ends_its_process_quietly_when_spark_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    reader = LogReader(FakeTail(5), None)
    reader.stop()
    try:
        raise ValueError
    except ValueError:
        reader.stop()
    assert ended == []
    try:
        raise EOFError
    except EOFError:
        reader.stop()
    assert ended == [0]


def test_a_log_that_does_not_say_how_its_records_are_read_cannot_be_made() -> None:
    with pytest.raises(TypeError, match=r"abstract.* read"):
        type("Unread", (NumberedLog,), {})(None)
