"""The durable list of a topic's slices: cut once, without a gap between two, whatever the topic does meanwhile."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminae.errors import InvalidOption, LogDamaged, SourceUnavailable
from laminae.spark.sources.kafka.broker import beginning, topics
from laminae.spark.sources.kafka.slices import Offsets, Place, Slice, SliceList, Span, cut, merged, nested, parsed
from laminae.spark.sources.log_head import LogDirectory

A, B = Place("orders", 0), Place("orders", 1)
AWAY = SourceUnavailable(source="orders", location="Kafka", problem="TimeoutException")


@dataclass
class FakeBroker:
    """A topic in a dict. `first` is what retention has left."""

    there: Offsets
    first: Offsets = field(default_factory=dict)
    is_away: bool = False

    def beginning(self) -> Offsets:
        return self.starts()

    def ends(self, known: Offsets) -> Offsets:
        if self.is_away:
            raise AWAY
        return dict(self.there)

    def starts(self) -> Offsets:
        return {place: self.first.get(place, 0) for place in self.there}


@pytest.fixture
def log(tmp_path: Path) -> LogDirectory:
    return LogDirectory("orders", str(tmp_path / "log"))


def spans(slices: SliceList, items: range) -> list[dict[str, tuple[int, int]]]:
    return [
        {str(place): (each.starts[place], each.ends[place]) for place in sorted(each.starts)}
        for each in slices.entries(items)
    ]


def test_a_slice_has_what_came_since_the_one_before(log: LogDirectory) -> None:
    broker = FakeBroker({A: 3, B: 1})
    slices = SliceList(log, broker, None)
    assert slices.items(0) == 1
    broker.there = {A: 3, B: 5}
    assert slices.items(1) == 2
    assert slices.items(2) == 2
    assert spans(slices, range(2)) == [
        {"orders-0": (0, 3), "orders-1": (0, 1)},
        {"orders-0": (3, 3), "orders-1": (1, 5)},
    ]


def test_slices_are_the_same_for_another_process(log: LogDirectory) -> None:
    broker = FakeBroker({A: 3})
    SliceList(log, broker, None).items(0)
    broker.there = {A: 9}
    other = SliceList(log, broker, None)
    # What was cut off is there first; the topic is asked when it has been read.
    assert other.items(0) == 1
    assert other.items(1) == 2
    assert spans(other, range(2)) == [{"orders-0": (0, 3)}, {"orders-0": (3, 9)}]


def test_a_bounded_run_takes_everything_that_is_there(log: LogDirectory) -> None:
    broker = FakeBroker({A: 3})
    slices = SliceList(log, broker, 2)
    assert slices.all_items() == 2
    broker.there = {A: 8}
    assert slices.all_items() == 5


def test_the_place_of_an_empty_topic_is_kept(log: LogDirectory) -> None:
    broker = FakeBroker({A: 7}, first={A: 7})
    assert SliceList(log, broker, None).items(0) == 1
    broker.there = {A: 9}
    broker.first = {A: 9}
    slices = SliceList(log, broker, None)
    assert slices.items(1) == 2
    assert spans(slices, range(1, 2)) == [{"orders-0": (7, 9)}]


def test_a_new_partition_is_read_from_its_first_record(log: LogDirectory) -> None:
    broker = FakeBroker({A: 3})
    slices = SliceList(log, broker, None)
    slices.items(0)
    broker.there, broker.first = {A: 3, B: 6}, {A: 2, B: 4}
    assert slices.items(1) == 2
    assert spans(slices, range(1, 2)) == [{"orders-0": (3, 3), "orders-1": (4, 6)}]
    assert merged(slices.entries(range(2))) == {A: Span(0, 3), B: Span(4, 6)}


def test_a_topic_that_is_gone_from_a_pattern_keeps_its_place(log: LogDirectory) -> None:
    other = Place("returns", 0)
    broker = FakeBroker({A: 3, other: 2})
    slices = SliceList(log, broker, None)
    slices.items(0)
    broker.there = {A: 3}
    assert slices.items(1) == 1
    broker.there = {A: 4}
    assert slices.items(1) == 2
    assert spans(slices, range(1, 2)) == [{"orders-0": (3, 4), "returns-0": (2, 2)}]


def test_a_topic_that_was_made_again_is_read_since_then_alone(log: LogDirectory) -> None:
    broker = FakeBroker({A: 5, B: 5})
    slices = SliceList(log, broker, None)
    slices.items(0)
    broker.there = {A: 2, B: 7}
    slices.items(1)
    broker.there = {A: 4, B: 7}
    assert slices.items(2) == 3
    assert merged(slices.entries(range(3))) == {A: Span(0, 4, is_anew=True), B: Span(0, 7)}
    assert merged(slices.entries(range(2, 3))) == {A: Span(2, 4), B: Span(7, 7)}


def test_a_broker_that_is_away_writes_nothing(log: LogDirectory) -> None:
    broker = FakeBroker({A: 3}, is_away=True)
    slices = SliceList(log, broker, None)
    with pytest.raises(SourceUnavailable):
        slices.items(0)
    broker.is_away = False
    assert slices.items(0) == 1


def test_a_line_that_is_no_slice_is_damage(log: LogDirectory) -> None:
    slices = SliceList(log, FakeBroker({A: 3}), None)
    slices.items(0)
    (file,) = Path(log.path).glob("*.jsonl")
    file.write_text("{}\n")
    with pytest.raises(LogDamaged):
        list(slices.entries(range(1)))


offsets = st.dictionaries(st.builds(Place, st.just("t"), st.integers(0, 5)), st.integers(0, 50), min_size=1)


@given(starts=offsets, more=st.lists(st.integers(0, 40), min_size=6, max_size=6), limit=st.integers(1, 30))
def test_slices_join_without_gap_and_stay_near_the_limit(starts: Offsets, more: list[int], limit: int) -> None:
    ends = {place: start + more[place.partition] for place, start in starts.items()}
    made = cut(starts, ends, limit, 7)
    assert [each.item for each in made] == list(range(7, 7 + len(made)))
    reached = starts
    for each in made:
        assert each.starts == reached
        assert all(each.ends[place] >= start for place, start in each.starts.items())
        assert sum(each.ends[place] - start for place, start in each.starts.items()) < limit + len(starts)
        reached = each.ends
    assert reached == ends


def test_nothing_new_is_no_slice() -> None:
    assert cut({A: 3}, {A: 3}, None, 4) == []
    assert cut({A: 3}, {A: 3}, None, 0) == [Slice(0, {A: 3}, {A: 3})]


@given(offsets)
def test_offsets_are_written_as_spark_does_and_read_again(found: Offsets) -> None:
    assert parsed(json.dumps(nested(found))) == found


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", {"startingOffsets": "earliest"}),
        ("latest", {"startingOffsets": "latest"}),
        ('{"orders": {"0": 5}}', {"startingOffsets": '{"orders": {"0": 5}}'}),
        ("1700000000000", {"startingTimestamp": "1700000000000", "startingOffsetsByTimestampStrategy": "latest"}),
    ],
)
def test_beginning_is_a_word_offsets_or_a_moment(start: str, expected: dict[str, str]) -> None:
    assert beginning(start, "orders") == expected


@pytest.mark.parametrize("start", ["begin", "[1]", '{"orders": 5}', '{"orders": {"x": 5}}'])
def test_another_beginning_is_refused(start: str) -> None:
    with pytest.raises(InvalidOption, match="start"):
        beginning(start, "orders")


def test_a_source_has_topics_or_a_pattern() -> None:
    assert topics({"topic": "a,b"}, "orders") == {"subscribe": "a,b"}
    assert topics({"topic_pattern": "a.*"}, "orders") == {"subscribePattern": "a.*"}
    for given_ in ({}, {"topic": "a", "topic_pattern": "b"}):
        with pytest.raises(InvalidOption, match="topic"):
            topics(given_, "orders")
