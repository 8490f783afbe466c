"""How far each epoch of a log goes, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from laminae.errors import LogDamaged, SourceUnavailable
from laminae.spark.sources.base import NumberedSource
from laminae.spark.sources.latest_offset import ClockTail, HeadTail, log_at
from laminae.spark.sources.micro_batch_stream import LogOffsets, ToldOffsets

if TYPE_CHECKING:
    import os

GONE = SourceUnavailable(source="orders", location="/in", problem="No such file or directory")


@dataclass
class FakeTail:
    there: int | Exception

    def items(self, seen: int) -> int:
        if isinstance(self.there, Exception):
            raise self.there
        return self.there


def test_offset_is_what_is_there() -> None:
    assert LogOffsets(FakeTail(5), None).latest(2) == 5


def test_offset_moves_by_the_limit_at_most() -> None:
    offsets = LogOffsets(FakeTail(5), 2)
    assert [offsets.latest(seen) for seen in (0, 2, 4, 5)] == [2, 4, 5, 5]


def test_bounded_run_ends_where_the_log_ended_when_it_began() -> None:
    tail = FakeTail(3)
    offsets = LogOffsets(tail, 2)
    offsets.fix_target()
    tail.there = 9
    assert [offsets.latest(seen) for seen in (0, 2, 3)] == [2, 3, 3]


def test_unavailable_source_waits_and_goes_on() -> None:
    tail = FakeTail(GONE)
    offsets = LogOffsets(tail, None)
    assert offsets.latest(2) == 2
    tail.there = 3
    assert offsets.latest(2) == 3


def test_unavailable_source_fails_a_bounded_run() -> None:
    told: list[Exception] = []
    with pytest.raises(SourceUnavailable):
        ToldOffsets(LogOffsets(FakeTail(GONE), None), told.append).fix_target()
    assert told == [GONE]


def test_what_ends_a_stream_is_told_and_what_it_waits_for_is_not() -> None:
    told: list[Exception] = []
    damaged = LogDamaged(source="orders", file="/log", problem="it counts 1 items, and 2 are there")
    ToldOffsets(LogOffsets(FakeTail(GONE), None), told.append).latest(0)
    assert told == []
    with pytest.raises(LogDamaged):
        ToldOffsets(LogOffsets(FakeTail(damaged), None), told.append).latest(0)
    assert told == [damaged]


def test_damaged_log_does_not_wait() -> None:
    with pytest.raises(LogDamaged):
        LogOffsets(FakeTail(LogDamaged(source="orders", file="head.json", problem="cut")), None).latest(2)


def test_log_that_lost_items_fails_a_bounded_run(tmp_path: os.PathLike[str]) -> None:
    offsets = LogOffsets(HeadTail(log_at({"source": "orders", "directory": str(tmp_path)})), None)
    offsets.fix_target()
    with pytest.raises(LogDamaged, match="4 were there before"):
        offsets.latest(4)


def test_clock_set_back_makes_a_rate_wait() -> None:
    assert ClockTail(created=2**62).items(7) == 7


def test_a_log_that_does_not_say_how_its_records_are_read_cannot_be_made() -> None:
    with pytest.raises(TypeError, match=r"abstract.* read"):
        type("Unread", (NumberedSource,), {})(None, None)
