"""The logs of sources on Spark: a range read again has the same raw records, and streams move by their offsets."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from laminae.catalog.model import SourceRecord
from laminae.errors import HomeUnwritable, InvalidOption, InvalidRow, LogDamaged, NotAvailable, SourceUnavailable
from laminae.spark.formats.protocol import RAW_SCHEMA
from laminae.spark.sources import push
from laminae.spark.sources.protocol import LogRange
from laminae.spark.sources.push import append
from laminae.spark.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from laminae.spark.sources.protocol import Source

SEED = 20260301
BORN = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPAWN = multiprocessing.get_context("spawn")


def source(number: int = 1, *, born: datetime = BORN, **options: str) -> SourceRecord:
    given = tuple(sorted(options.items()))
    return SourceRecord(number, "orders", 1, pa.schema([]), 1, given, (), None, None, born, 1)


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    return place


def open_log(source: SourceRecord, home: str) -> Source:
    return open_source(source, home).source


def records(spark: SparkSession, log: Source, start: str | None = None, end: str | None = None) -> list[Row]:
    frame = log.read(spark, LogRange(start or log.initial(), end or log.latest()))
    return sorted(frame.collect(), key=lambda row: (row.item, row.offset or 0, bytes(row.value)))


def values(spark: SparkSession, log: Source, start: str | None = None, end: str | None = None) -> list[bytes]:
    return [bytes(row.value) for row in records(spark, log, start, end)]


class Epochs:
    """The ranges that a stream went through, as Spark's offset log has them."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint

    def ends(self) -> list[str]:
        files = sorted((file for file in (self.checkpoint / "offsets").iterdir() if file.name.isdigit()), key=number)
        return [file.read_text().splitlines()[-1] for file in files]


def number(file: Path) -> int:
    return int(file.name)


def nothing(frame: DataFrame, batch: int) -> None:
    pass


def begin(spark: SparkSession, log: Source, checkpoint: Path, **trigger: object) -> StreamingQuery:
    writer = log.stream(spark).writeStream.foreachBatch(nothing).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()  # type: ignore[arg-type]


@contextmanager
def running(spark: SparkSession, log: Source, checkpoint: Path) -> Iterator[StreamingQuery]:
    query = begin(spark, log, checkpoint)
    try:
        yield query
    finally:
        query.stop()


def run_to_the_end(spark: SparkSession, log: Source, checkpoint: Path) -> list[str]:
    query = begin(spark, log, checkpoint, availableNow=True)
    assert query.awaitTermination(60)
    return Epochs(checkpoint).ends()


def test_pushed_rows_are_raw_records_with_item_offset_and_stamp(spark: SparkSession, home: str) -> None:
    orders = source()
    assert append(orders, home, [{"id": 1}, {"id": 2}], 1) == 2
    assert append(orders, home, pa.table({"id": [3]}), 2) == 1
    log = open_log(orders, home)
    assert log.latest() == '{"item": 2}'
    frame = log.read(spark, LogRange(log.initial(), log.latest()))
    assert frame.schema == spark.createDataFrame([], RAW_SCHEMA).schema
    assert [(bytes(row.value), row.offset, row.item, row.version, row.key) for row in records(spark, log)] == [
        (b'{"id":1}', 0, 0, 1, None),
        (b'{"id":2}', 1, 0, 1, None),
        (b'{"id":3}', 2, 1, 2, None),
    ]


def test_offset_says_which_item_comes_next(home: str) -> None:
    log = open_log(source(), home)
    assert (log.item(log.initial()), log.item('{"item": 7}')) == (0, 7)


@pytest.mark.parametrize("text", ["", "7", "{}", '{"item": "x"}', '{"logOffset": 3}'])
def test_foreign_offset_is_refused(home: str, text: str) -> None:
    with pytest.raises(LogDamaged, match="is not an offset"):
        open_log(source(), home).item(text)


def test_empty_log_and_empty_range_have_no_records(spark: SparkSession, home: str) -> None:
    log = open_log(source(), home)
    assert (log.initial(), log.latest()) == ('{"item": 0}', '{"item": 0}')
    assert values(spark, log) == []


def test_insert_of_no_rows_is_no_item(home: str) -> None:
    assert append(source(), home, [], 1) == 0
    assert open_log(source(), home).latest() == '{"item": 0}'


def test_refused_row_stores_nothing_of_its_insert(home: str) -> None:
    with pytest.raises(InvalidRow, match="Row 1"):
        append(source(), home, [{"x": 1.0}, {"x": float("nan")}], 1)
    assert not Path(home).exists()


def test_every_range_can_be_read_again_with_the_same_rows(spark: SparkSession, home: str) -> None:
    orders = source()
    for item in range(4):
        append(orders, home, [{"id": item * 10 + row} for row in range(item + 1)], 1)
    log = open_log(orders, home)
    first = records(spark, log, '{"item": 1}', '{"item": 3}')
    append(orders, home, [{"id": 99}], 2)
    assert records(spark, open_log(orders, home), '{"item": 1}', '{"item": 3}') == first
    assert [row.item for row in first] == [1, 1, 2, 2, 2]


def test_many_small_inserts_are_one_range(spark: SparkSession, home: str) -> None:
    orders, threshold = source(), "spark.sql.sources.parallelPartitionDiscovery.threshold"
    for item in range(50):
        append(orders, home, [{"id": item}], 1)
    before = spark.conf.get(threshold)
    assert [row.offset for row in records(spark, open_log(orders, home))] == list(range(50))
    assert spark.conf.get(threshold) == before


def test_home_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    home = str(tmp_path / "a b*[x]{y}%20ü")
    for item in range(3):
        append(source(), home, [{"id": item}], 1)
    assert values(spark, open_log(source(), home)) == [b'{"id":0}', b'{"id":1}', b'{"id":2}']


def test_file_of_an_insert_that_died_before_the_head_is_written_over(
    spark: SparkSession, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = source()
    append(orders, home, [{"id": 0}], 1)
    with monkeypatch.context() as patch:
        patch.setattr("laminae.spark.sources.log_head.LogDirectory.publish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            append(orders, home, [{"id": "lost"}, {"id": "too"}], 1)
    assert values(spark, open_log(orders, home)) == [b'{"id":0}']
    append(orders, home, [{"id": 1}], 1)
    assert [(row.offset, bytes(row.value)) for row in records(spark, open_log(orders, home))] == [
        (0, b'{"id":0}'),
        (1, b'{"id":1}'),
    ]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_insert_on_a_full_disk_says_so_and_is_not_there(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    append(source(), home, [{"id": 0}], 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(HomeUnwritable, match="No space left on device"):
            append(source(), home, [{"id": 1}], 1)
    assert open_log(source(), home).latest() == '{"item": 1}'


def full(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_missing_item_is_named(spark: SparkSession, home: str) -> None:
    append(source(), home, [{"id": 0}], 1)
    log = open_log(source(), home)
    file = next(Path(home).rglob("000000000000.parquet"))
    file.unlink()
    with pytest.raises(LogDamaged) as found:
        log.read(spark, LogRange(log.initial(), log.latest()))
    assert found.value.params["file"] == str(file)


def test_range_behind_the_end_is_damage(spark: SparkSession, home: str) -> None:
    append(source(), home, [{"id": 0}], 1)
    log = open_log(source(), home)
    with pytest.raises(LogDamaged, match="counts 1 items, and 2"):
        log.read(spark, LogRange(log.initial(), '{"item": 2}'))


def insert_many(home: str, writer: int, inserts: int) -> None:
    for number in range(inserts):
        append(source(), home, [{"writer": writer, "number": number, "row": row} for row in range(3)], 1)


def test_concurrent_inserts_lose_and_double_nothing(spark: SparkSession, home: str) -> None:
    writers = [SPAWN.Process(target=insert_many, args=(home, writer, 25)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    found = records(spark, open_log(source(), home))
    assert [row.offset for row in found] == list(range(300))
    assert {row.item for row in found} == set(range(100))
    assert len({bytes(row.value) for row in found}) == 300


def insert_for_ever(home: str, first: int, acknowledged: Connection) -> None:
    number = first
    while True:
        append(source(), home, [{"id": number, "row": row} for row in range(2)], 1)
        acknowledged.send(number)
        number += 1


def test_killed_inserter_leaves_whole_inserts_and_all_that_were_acknowledged(spark: SparkSession, home: str) -> None:
    dice, first = random.Random(SEED), 0
    for _ in range(5):
        told = insert_and_kill(home, first, dice)
        items = open_log(source(), home).item(open_log(source(), home).latest())
        assert items in (first + len(told), first + len(told) + 1)
        first = items
    found = records(spark, open_log(source(), home))
    assert [row.offset for row in found] == list(range(2 * first))
    assert [bytes(row.value) for row in found] == [
        f'{{"id":{number},"row":{row}}}'.encode() for number in range(first) for row in range(2)
    ]


def insert_and_kill(home: str, first: int, dice: random.Random) -> list[int]:
    """What the inserter was told before it died."""
    receiver, sender = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=insert_for_ever, args=(home, first, sender))
    process.start()
    sender.close()
    try:
        told = [receiver.recv() for _ in range(dice.randint(1, 20))]
        # The moment within an insert at which it dies: nothing to wait for tells such moments apart.
        time.sleep(dice.uniform(0, 0.005))
    finally:
        process.kill()
        process.join()
        process.close()
    with receiver, suppress(EOFError):
        while True:
            told.append(receiver.recv())
    return told


def test_stream_moves_by_items_and_its_texts_are_the_logs(spark: SparkSession, home: str, tmp_path: Path) -> None:
    orders = source()
    log = open_log(orders, home)
    with running(spark, log, tmp_path / "checkpoint") as query:
        for item in range(3):
            append(orders, home, [{"id": item}], 1)
            query.processAllAvailable()
            assert Epochs(tmp_path / "checkpoint").ends()[-1] == log.latest() == f'{{"item": {item + 1}}}'


def test_available_now_takes_what_is_there_and_ends(spark: SparkSession, home: str, tmp_path: Path) -> None:
    orders = source(max_files_per_epoch="2")
    for item in range(5):
        append(orders, home, [{"id": item}], 1)
    log = open_log(orders, home)
    assert run_to_the_end(spark, log, tmp_path / "checkpoint") == ['{"item": 2}', '{"item": 4}', '{"item": 5}']
    append(orders, home, [{"id": 5}], 1)
    assert run_to_the_end(spark, log, tmp_path / "checkpoint")[3:] == ['{"item": 6}']


def test_stream_over_an_empty_log_begins_with_one_empty_epoch(spark: SparkSession, home: str, tmp_path: Path) -> None:
    log = open_log(source(), home)
    for _ in range(2):
        assert run_to_the_end(spark, log, tmp_path / "checkpoint") == [log.initial()]


def test_stream_over_a_log_that_lost_items_fails(spark: SparkSession, home: str, tmp_path: Path) -> None:
    append(source(), home, [{"id": 0}], 1)
    log = open_log(source(), home)
    run_to_the_end(spark, log, tmp_path / "checkpoint")
    shutil.rmtree(home)
    with pytest.raises(StreamingQueryException, match="LOG_DAMAGED"):
        run_to_the_end(spark, log, tmp_path / "checkpoint")


def files(inbox: Path, **options: str) -> SourceRecord:
    return source(connector="files", path=str(inbox), **options)


@pytest.mark.parametrize("directory", ["in", "in box%20ü", "in*[x]"])
def test_lines_of_files_are_raw_records_with_their_file_and_its_number(
    spark: SparkSession, home: str, tmp_path: Path, directory: str
) -> None:
    inbox = tmp_path / directory
    inbox.mkdir()
    names = ["a b.json", "ü.json", "50%.json", "100%25.json", "st*r?.json", "[x].json", "pl+us.json", "#&=.json"]
    for name in names:
        (inbox / name).write_bytes(f'{{"n": "{name}"}}\n'.encode())
        os.utime(inbox / name, (1, 1))
    log = open_log(files(inbox), home)
    found = records(spark, log)
    assert [(row.item, row.partition, bytes(row.value)) for row in found] == [
        (item, str(inbox / name), f'{{"n": "{name}"}}'.encode()) for item, name in enumerate(sorted(names))
    ]
    assert {row.timestamp.replace(tzinfo=UTC) for row in found} == {datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}
    one = records(spark, log, '{"item": 1}', '{"item": 2}')
    assert one == found[1:2]
    schemas = [log.read(spark, LogRange(log.initial(), f'{{"item": {end}}}')).schema for end in (0, 1, 2)]
    assert [[(field.name, field.dataType) for field in schema] for schema in schemas] == 3 * [
        [(field.name, field.dataType) for field in spark.createDataFrame([], RAW_SCHEMA).schema]
    ]


def test_bytes_of_a_line_are_kept_as_they_are(spark: SparkSession, home: str, inbox: Path) -> None:
    (inbox / "a.json").write_bytes(b'{"a": "\xff\xfe"}\n\n{"b":\r1}\n{"last": 1}')
    assert values(spark, open_log(files(inbox), home)) == [b"", b'{"a": "\xff\xfe"}', b'{"b":\r1}', b'{"last": 1}']


def test_empty_file_is_an_item_without_records(spark: SparkSession, home: str, inbox: Path) -> None:
    (inbox / "empty.json").touch()
    log = open_log(files(inbox), home)
    assert (log.latest(), values(spark, log)) == ('{"item": 1}', [])


def test_many_files_are_one_range(spark: SparkSession, home: str, inbox: Path) -> None:
    for item in range(40):
        (inbox / f"{item:02}.json").write_text(f"{item}\n")
        os.utime(inbox / f"{item:02}.json", (item, item))
    found = records(spark, open_log(files(inbox), home))
    assert [(row.item, bytes(row.value)) for row in found] == [(item, str(item).encode()) for item in range(40)]


def test_files_that_appear_while_it_runs_are_read_once(
    spark: SparkSession, home: str, inbox: Path, tmp_path: Path
) -> None:
    log = open_log(files(inbox), home)
    with running(spark, log, tmp_path / "checkpoint") as query:
        for item in range(3):
            (inbox / f".{item}").write_text(f"{item}\n")
            (inbox / f".{item}").rename(inbox / f"{item}.json")
            query.processAllAvailable()
    # Whether the first epoch is an empty one depends on who is faster, the stream or the first file.
    assert Epochs(tmp_path / "checkpoint").ends()[-3:] == [f'{{"item": {item}}}' for item in (1, 2, 3)]
    assert values(spark, log) == [b"0", b"1", b"2"]


def test_an_epoch_has_at_most_so_many_files(spark: SparkSession, home: str, inbox: Path, tmp_path: Path) -> None:
    for item in range(5):
        (inbox / f"{item}.json").write_text("{}\n")
    log = open_log(files(inbox, max_files_per_epoch="3"), home)
    assert run_to_the_end(spark, log, tmp_path / "checkpoint") == ['{"item": 3}', '{"item": 5}']


def test_vanished_directory_is_seen_by_the_driver_while_the_stream_waits_for_it(
    spark: SparkSession, home: str, inbox: Path, tmp_path: Path
) -> None:
    (inbox / "a.json").write_text("1\n")
    log, away = open_log(files(inbox), home), tmp_path / "away"
    with running(spark, log, tmp_path / "checkpoint") as query:
        query.processAllAvailable()
        inbox.rename(away)
        query.processAllAvailable()
        with pytest.raises(SourceUnavailable, match="orders"):
            log.latest()
        assert query.isActive
        (away / "b.json").write_text("2\n")
        away.rename(inbox)
        query.processAllAvailable()
        assert query.exception() is None
    assert Epochs(tmp_path / "checkpoint").ends() == ['{"item": 1}', '{"item": 2}']
    assert values(spark, log) == [b"1", b"2"]


def test_bounded_run_over_a_vanished_directory_fails(
    spark: SparkSession, home: str, inbox: Path, tmp_path: Path
) -> None:
    inbox.rmdir()
    with pytest.raises(StreamingQueryException, match="SOURCE_UNAVAILABLE"):
        run_to_the_end(spark, open_log(files(inbox), home), tmp_path / "checkpoint")


def test_file_that_is_gone_or_changed_is_named(spark: SparkSession, home: str, inbox: Path) -> None:
    file = inbox / "a.json"
    file.write_text("1\n")
    log = open_log(files(inbox), home)
    span = LogRange(log.initial(), log.latest())
    file.write_text("1\n2\n")
    with pytest.raises(SourceUnavailable, match="it has 4 bytes, and had 2"):
        log.read(spark, span)
    file.unlink()
    with pytest.raises(SourceUnavailable) as gone:
        log.read(spark, span)
    assert gone.value.params["location"] == str(file)


def test_files_without_a_path_or_on_another_system_are_refused(home: str) -> None:
    with pytest.raises(InvalidOption, match="path"):
        open_log(source(connector="files"), home)
    with pytest.raises(NotAvailable):
        open_log(source(connector="files", path="s3://bucket/in"), home)


def test_connector_without_a_log_is_refused(home: str) -> None:
    with pytest.raises(NotAvailable, match="Connector pigeon"):
        open_log(source(connector="pigeon"), home)


def test_files_of_a_range_are_described_without_those_that_were_refused(home: str, inbox: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (inbox / name).write_text("id\n1\n")
    log = open_log(files(inbox, format="csv"), home)
    refused = log.files(LogRange(log.initial(), log.latest(), frozenset({0})))
    assert [entry.path for entry in refused] == [str(inbox / "b.csv")]


def test_directory_with_the_name_of_a_pattern_that_vanishes_is_not_empty(home: str, tmp_path: Path) -> None:
    place = tmp_path / "in [ab]*"
    place.mkdir()
    (place / "a.json").write_text("1\n")
    log = open_log(files(place), home)
    assert log.latest() == '{"item": 1}'
    place.rename(tmp_path / "away")
    for seen in (log, open_log(files(place), home)):
        with pytest.raises(SourceUnavailable, match="No such file"):
            seen.latest()


def test_rate_gives_the_same_rows_for_a_range_at_any_time(spark: SparkSession, home: str) -> None:
    log = open_log(source(connector="rate", rows_per_second="2"), home)
    found = records(spark, log, '{"item": 3}', '{"item": 5}')
    assert [(row.item, row.offset, bytes(row.value)) for row in found] == [
        (3, 6, b'{"value":6,"timestamp":"2026-03-01T12:00:03.000000Z"}'),
        (3, 7, b'{"value":7,"timestamp":"2026-03-01T12:00:03.500000Z"}'),
        (4, 8, b'{"value":8,"timestamp":"2026-03-01T12:00:04.000000Z"}'),
        (4, 9, b'{"value":9,"timestamp":"2026-03-01T12:00:04.500000Z"}'),
    ]
    assert [row.timestamp.replace(tzinfo=UTC) - BORN for row in found] == [
        timedelta(seconds=seconds) for seconds in (3, 3.5, 4, 4.5)
    ]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert values(spark, log, '{"item": 3}', '{"item": 5}') == [bytes(row.value) for row in found]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_rate_is_as_long_as_its_source_is_old(home: str) -> None:
    log = open_log(source(connector="rate", born=datetime.now(UTC) - timedelta(hours=1)), home)
    assert 3600 <= log.item(log.latest()) < 3900
    unborn = open_log(source(connector="rate", born=datetime.now(UTC) + timedelta(hours=1)), home)
    assert unborn.latest() == unborn.initial()


def test_rate_of_no_rows_has_none(spark: SparkSession, home: str) -> None:
    log = open_log(source(connector="rate", rows_per_second="0"), home)
    assert values(spark, log, '{"item": 0}', '{"item": 9}') == []


def test_columns_of_a_pushed_file_are_raw_columns() -> None:
    assert set(push.COLUMNS.names) < {column.split()[0] for column in RAW_SCHEMA.split(", ")}
