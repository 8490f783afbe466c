"""The outbox: each sink at its own pace, progress on record, failures that wait by the clock and hold up nobody."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest

from laminae.catalog import open_catalog
from laminae.errors import SinkUnavailable
from laminae.spark.sinks import Delivery, Outbox, Segment
from laminae.spark.sinks.outbox import BACKOFF
from tests.support.catalogs import NOON, drop, sink

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from laminae.catalog import Catalog
    from laminae.catalog.model import SinkRecord
    from laminae.net.backoff import Backoff

NO_SPARK = cast("SparkSession", None)

FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=BACKOFF.first), timedelta(seconds=BACKOFF.longest)


def backoff(chance: float) -> Backoff:
    return replace(BACKOFF, chance=lambda: chance)


@dataclass
class Clock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def forward(self, time: timedelta) -> None:
        self.now += time


@dataclass
class Deliveries(Delivery):
    """Keeps what was delivered; sinks in `broken` fail."""

    made: list[tuple[str, int]] = field(default_factory=list)
    tried: int = 0
    broken: set[str] = field(default_factory=set)
    at: int = 0

    def deliver(self, spark: SparkSession, segment: Segment, sink: SinkRecord) -> None:
        self.tried += 1
        if sink.name in self.broken and segment.epoch >= self.at:
            raise SinkUnavailable(sink=sink.name, location="/out", problem="No space left on device")
        self.made.append((sink.name, segment.epoch))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(str(tmp_path / "home"))
    opened.commit([sink("one"), sink("two")])
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def deliveries() -> Deliveries:
    return Deliveries()


@pytest.fixture
def outbox(catalog: Catalog, clock: Clock, deliveries: Deliveries) -> Outbox:
    return Outbox(catalog, "home", clock, backoff=backoff(1.0), delivery=deliveries)


def segments(*epochs: int) -> list[Segment]:
    return [Segment(epoch, f"segment-{epoch}", pa.schema([]), 1) for epoch in epochs]


def pump(outbox: Outbox, *epochs: int) -> None:
    outbox.pump(NO_SPARK, lambda sink: [found for found in segments(*epochs) if found.epoch > sink.progress])


def stored(catalog: Catalog, name: str) -> SinkRecord:
    found = catalog.sink(name)
    assert found is not None
    return found


def stands(catalog: Catalog, name: str) -> tuple[int, str, bool]:
    found = stored(catalog, name)
    return found.progress, found.state, found.problem is not None


def test_every_sink_gets_the_segments_after_its_progress_in_order(
    outbox: Outbox, catalog: Catalog, deliveries: Deliveries
) -> None:
    pump(outbox, 3, 1, 2)
    pump(outbox, 1, 2, 3, 4)
    assert [epoch for name, epoch in deliveries.made if name == "one"] == [1, 2, 3, 4]
    assert stands(catalog, "one") == stands(catalog, "two") == (4, "live", False)


def test_segment_at_or_before_the_progress_is_not_delivered_again(outbox: Outbox, deliveries: Deliveries) -> None:
    pump(outbox, 1, 2)
    outbox.pump(NO_SPARK, lambda _: segments(1, 2))
    assert [epoch for name, epoch in deliveries.made if name == "one"] == [1, 2]


def test_failing_sink_says_why_and_holds_up_no_other(outbox: Outbox, catalog: Catalog, deliveries: Deliveries) -> None:
    deliveries.broken = {"one"}
    pump(outbox, 1)
    assert stands(catalog, "one") == (0, "failing", True)
    assert "No space left" in str(stored(catalog, "one").problem)
    assert stands(catalog, "two") == (1, "live", False)


def test_sink_that_fails_half_way_keeps_what_it_got(outbox: Outbox, catalog: Catalog, deliveries: Deliveries) -> None:
    deliveries.broken, deliveries.at = {"one"}, 3
    pump(outbox, 1, 2, 3, 4)
    assert stands(catalog, "one") == (2, "failing", True)


def test_success_clears_the_problem(outbox: Outbox, catalog: Catalog, deliveries: Deliveries, clock: Clock) -> None:
    deliveries.broken = {"one"}
    pump(outbox, 1)
    deliveries.broken = set()
    clock.forward(FIRST_WAIT)
    pump(outbox, 1, 2)
    assert stands(catalog, "one") == (2, "live", False)
    assert [epoch for name, epoch in deliveries.made if name == "one"] == [1, 2]


def test_failing_sink_with_nothing_to_deliver_is_live_again(
    outbox: Outbox, catalog: Catalog, deliveries: Deliveries, clock: Clock
) -> None:
    deliveries.broken = {"one"}
    pump(outbox, 1)
    clock.forward(FIRST_WAIT)
    pump(outbox)
    assert stands(catalog, "one") == (0, "live", False)


def test_waits_double_up_to_a_minute(outbox: Outbox, catalog: Catalog, deliveries: Deliveries, clock: Clock) -> None:
    catalog.commit([drop("sink", stored(catalog, "two").id)])
    deliveries.broken = {"one"}
    pump(outbox, 1)
    waits = []
    for _ in range(8):
        waited, before = timedelta(0), deliveries.tried
        while deliveries.tried == before:
            clock.forward(timedelta(seconds=1))
            waited += timedelta(seconds=1)
            pump(outbox, 1)
        waits.append(waited.total_seconds())
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_year_of_failures_still_waits_a_minute(outbox: Outbox, deliveries: Deliveries, clock: Clock) -> None:
    deliveries.broken = {"one"}
    for tries in range(1, 1100):
        pump(outbox, 1)
        assert deliveries.tried == tries + 1
        clock.forward(LONGEST_WAIT)


@pytest.mark.parametrize(("dice", "seconds"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_jitter_takes_up_to_half_of_the_wait(
    catalog: Catalog, clock: Clock, deliveries: Deliveries, dice: float, seconds: float
) -> None:
    outbox = Outbox(catalog, "home", clock, backoff=backoff(dice), delivery=deliveries)
    deliveries.broken = {"one", "two"}
    pump(outbox, 1)
    clock.forward(timedelta(seconds=seconds) - timedelta(microseconds=1))
    pump(outbox, 1)
    assert deliveries.tried == 2
    clock.forward(timedelta(microseconds=1))
    pump(outbox, 1)
    assert deliveries.tried == 4


def test_segments_that_cannot_be_found_are_the_problem_of_their_sink(outbox: Outbox, catalog: Catalog) -> None:
    def find(sink: SinkRecord) -> list[Segment]:
        if sink.name == "one":
            raise FileNotFoundError("the segment is gone")
        return segments(1)

    outbox.pump(NO_SPARK, find)
    assert stands(catalog, "one") == (0, "failing", True)
    assert stands(catalog, "two") == (1, "live", False)


def test_sink_dropped_during_its_delivery_is_forgotten(outbox: Outbox, catalog: Catalog) -> None:
    def find(sink: SinkRecord) -> list[Segment]:
        if sink.name == "one":
            catalog.commit([drop("sink", sink.id)])
        return segments(1)

    outbox.pump(NO_SPARK, find)
    assert catalog.sink("one") is None
    assert stands(catalog, "two") == (1, "live", False)


def test_beginning_that_fails_leaves_the_sink_in_creation_and_waits(
    outbox: Outbox, catalog: Catalog, clock: Clock
) -> None:
    catalog.commit([replace(sink("new"), state="creating")])
    made: list[str] = []

    def begin() -> None:
        made.append("tried")
        raise OSError("read-only")

    for _ in range(2):
        outbox.attempt(stored(catalog, "new"), begin)
    assert (stands(catalog, "new"), made) == ((0, "creating", True), ["tried"])
    clock.forward(FIRST_WAIT)
    outbox.attempt(stored(catalog, "new"), begin)
    assert made == ["tried", "tried"]
