"""The stream of one source as the pipeline holds it: which failures pass, and when it is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest

from laminae.errors import RecordRefused, SourceUnavailable
from laminae.spark.driver.source_query import BACKOFF, SLOW_START, SourceStream
from tests.support.catalogs import NOON, live, made

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql.streaming.query import StreamingQuery

    from laminae.catalog.model import SourceRecord

FIRST_WAIT = timedelta(seconds=BACKOFF.first)


@dataclass
class Ended:
    """A query that Spark has ended with this failure."""

    failure: Exception | None
    isActive: bool = False  # noqa: N815  # Spark's name

    def exception(self) -> Exception | None:
        return self.failure


@pytest.fixture
def source(tmp_path: Path) -> SourceRecord:
    from laminae.catalog import open_catalog

    catalog = open_catalog(str(tmp_path / "home"))
    made(catalog, "orders", "id")
    found = live(catalog)
    catalog.close()
    return found


def stream_of(source: SourceRecord, failure: Exception | None) -> SourceStream:
    return SourceStream(source, query=cast("StreamingQuery", Ended(failure)))


def test_a_reader_that_was_too_slow_to_start_is_tried_again_after_a_growing_wait(source: SourceRecord) -> None:
    stream = stream_of(source, RuntimeError(f"{SLOW_START}."))
    assert stream.is_retried
    now = NOON
    for wait in (FIRST_WAIT, FIRST_WAIT * 2, FIRST_WAIT * 4):
        assert not stream.is_due(now)
        assert not stream.is_due(now + wait - timedelta(milliseconds=1))
        now += wait
        assert stream.is_due(now)
        # As the pipeline does when it starts it.
        stream.due = None


def test_a_source_that_has_run_for_a_while_waits_no_longer_than_at_first(source: SourceRecord) -> None:
    stream = stream_of(source, RuntimeError(f"{SLOW_START}."))
    stream.failures = 3
    query = cast("Ended", stream.query)
    query.isActive = True
    assert not stream.is_due(NOON)
    assert not stream.is_due(NOON + FIRST_WAIT * 7)
    assert stream.failures == 3
    assert not stream.is_due(NOON + FIRST_WAIT * 8)
    query.isActive = False
    assert not stream.is_due(NOON + FIRST_WAIT * 9)
    assert stream.is_due(NOON + FIRST_WAIT * 10)


def test_records_out_of_reach_are_tried_again_and_refused_ones_are_not(source: SourceRecord) -> None:
    away = SourceStream(source, problem=SourceUnavailable(source="orders", location="/in", problem="not there"))
    refused = SourceStream(source, problem=RecordRefused(source="orders", place="here", reason="no number"))
    assert away.is_retried
    assert not refused.is_retried
    assert not refused.is_due(NOON)


def test_a_query_that_ended_by_itself_or_for_another_reason_is_not_tried_again(source: SourceRecord) -> None:
    assert not stream_of(source, None).is_retried
    assert not stream_of(source, RuntimeError("a surprise")).is_retried
