"""How an epoch reads its records: a choice from values alone, and the stages that EXPLAIN EPOCH shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from laminae.catalog.model import SourceRecord, WatermarkRecord
from laminae.codec.decoders import Decoder, DecoderTable
from laminae.engine.epochs.read_strategy import RangeFacts, ReadStrategy, read_strategies

SCHEMA = pa.schema([("id", pa.int64())])
SHORT, LINES = ReadStrategy.ARROW_SHORT_LINES, ReadStrategy.ARROW_LINES
FAST, EXACT = ReadStrategy.FAST_PLAN, ReadStrategy.EXACT


def source(key: tuple[int, ...] = (), watermark: WatermarkRecord | None = None, **options: str) -> SourceRecord:
    given = tuple(sorted(options.items()))
    return SourceRecord(1, "s", 1, SCHEMA, 1, given, key, watermark, None, datetime(2026, 1, 1, tzinfo=UTC), 1)


def table(**other: object) -> DecoderTable:
    return DecoderTable((Decoder(1, SCHEMA, 0),), SCHEMA, **other)  # type: ignore[arg-type]  # as the test says


@pytest.mark.parametrize(
    ("given", "strategies"),
    [
        (source(), (FAST, EXACT)),
        (source(connector="files"), (LINES, FAST, EXACT)),
        (source(connector="files", format="csv"), (EXACT,)),
        (source(connector="files", format="parquet"), (FAST, EXACT)),
        (source(connector="kafka"), (FAST, EXACT)),
        (source(connector="iceberg"), (EXACT,)),
        (source(changelog="retract", weight_field="w", connector="files"), (FAST, EXACT)),
        (source((1,), changelog="upsert", connector="files"), (EXACT,)),
        (source((1,), format="debezium-json", connector="kafka"), (SHORT, LINES, EXACT)),
        (source(format="debezium-json", connector="kafka"), (EXACT,)),
        (source(watermark=WatermarkRecord(1, 0), max_future="1 hour"), (EXACT,)),
        (source(max_future="1 hour"), (FAST, EXACT)),
    ],
)
def test_strategies_follow_from_the_definition_of_the_source(
    given: SourceRecord, strategies: tuple[ReadStrategy, ...]
) -> None:
    assert read_strategies(given, table()) == strategies


def test_framed_records_are_read_by_the_plan_of_their_writers() -> None:
    framed = source(connector="kafka", format="avro", registry="http://r:1")
    assert read_strategies(framed, table(writers=())) == (FAST, EXACT)
    events = source((1,), connector="kafka", format="avro", registry="http://r:1", changelog="debezium")
    assert read_strategies(events, table(writers=())) == (EXACT,)


def test_arrow_reads_one_version_alone() -> None:
    two = DecoderTable((Decoder(1, SCHEMA, 0), Decoder(2, SCHEMA, 5)), SCHEMA)
    assert read_strategies(source(connector="files"), two) == (FAST, EXACT)
    assert read_strategies(source(connector="files"), table(version_field="v")) == (FAST, EXACT)


def test_strategies_that_recent_records_ruled_out_are_left_out() -> None:
    assert read_strategies(source(connector="files"), table(), {FAST}) == (LINES, EXACT)
    assert read_strategies(source(connector="files"), table(), {FAST, LINES}) == (EXACT,)


@pytest.mark.parametrize("facts", [RangeFacts(has_broken_items=True), RangeFacts(waits_for_change=True)])
def test_a_range_whose_records_need_a_reason_each_is_read_exactly(facts: RangeFacts) -> None:
    assert read_strategies(source(connector="files"), table(), (), facts) == (EXACT,)
