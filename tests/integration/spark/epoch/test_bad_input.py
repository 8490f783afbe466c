"""Bad input and a bad day: directories that vanish, a disk that is full, huge and broken records. SPEC section 9."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import HomeUnwritable, LaminaeError, PipelineFailed, SourceUnavailable
from tests.support.small_disk import NO_MOUNT, fill, small_disk
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SECONDS = 60.0
MEGABYTE = 1 << 20


@pytest.fixture
def files(tmp_path: Path) -> Path:
    directory = tmp_path / "input"
    directory.mkdir()
    return directory


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path, files: Path) -> Iterator[lm.Database]:
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql(
            "CREATE SOURCE orders (id BIGINT NOT NULL, note STRING) "
            f"WITH (connector = 'files', format = 'json', path = '{files}')"
        )
        yield database


def put(files: Path, name: str, *records: bytes) -> None:
    hidden = files / f".{name}"
    hidden.write_bytes(b"".join(record + b"\n" for record in records))
    hidden.rename(files / name)


def record(number: int, **more: object) -> bytes:
    return json.dumps({"id": number, **more}).encode()


def ids(db: lm.Database) -> list[int]:
    return [row[0] for row in db.sql("SELECT id FROM orders ORDER BY id").fetchall()]


def told(db: lm.Database) -> str:
    """What any process is told of the source."""
    (row,) = [row for row in db.status().to_pylist() if row["kind"] == "source"]
    return str(row["detail"])


def test_a_directory_that_vanishes_is_named_and_the_stream_goes_on_when_it_is_back(
    db: lm.Database, files: Path
) -> None:
    put(files, "1.json", record(1))
    pipeline = db.start("50 milliseconds")
    try:
        pipeline.process_all_available()
        (before,) = pipeline.status()
        elsewhere = files.with_name("elsewhere")
        files.rename(elsewhere)
        (gone,) = pipeline.status()
        assert gone.state == "waiting"
        assert "[SOURCE_UNAVAILABLE] Source orders cannot be read at" in (gone.problem or "")
        until(lambda: "cannot be read at" in told(db), SECONDS, "the catalog tells of it")
        put(elsewhere, "2.json", record(2))
        elsewhere.rename(files)
        pipeline.process_all_available()
        (after,) = pipeline.status()
        assert (after.state, after.problem, after.run_id) == ("running", None, before.run_id)
        until(lambda: told(db).startswith("last epoch"), SECONDS, "the catalog tells that it is over")
    finally:
        pipeline.stop()
    assert ids(db) == [1, 2]


def test_a_bounded_run_over_a_directory_that_is_gone_is_refused(db: lm.Database, files: Path) -> None:
    files.rmdir()
    with pytest.raises(LaminaeError, match="cannot be read at") as refused:
        db.run()
    assert isinstance(refused.value, SourceUnavailable)
    assert "Traceback" not in str(refused.value)


def test_a_file_that_is_gone_when_its_epoch_comes_stops_the_source_until_it_is_back(
    db: lm.Database, files: Path
) -> None:
    put(files, "1.json", record(1))
    db.run()
    put(files, "2.json", record(2))
    pipeline = db.start("2 seconds")
    try:
        # Found and written down by a look at the log, then gone before the epoch reads it.
        pipeline.status()
        missing = files.with_name("2.json")
        (files / "2.json").rename(missing)
        until(lambda: pipeline.status()[0].state == "failed", SECONDS, "the source has failed")
        assert "2.json" in (pipeline.status()[0].problem or "")
        assert pipeline.is_running()
        missing.rename(files / "2.json")
        until(lambda: pipeline.status()[0].rows == 2, SECONDS, "the source goes on by itself")
    finally:
        pipeline.stop()
    assert ids(db) == [1, 2]


def test_a_full_disk_is_named_and_nothing_is_lost_when_there_is_room_again(spark: SparkSession, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as mounted:
        if not mounted:
            pytest.skip(NO_MOUNT)
        home, out = tmp_path / "disk" / "home", tmp_path / "out"
        with lm.connect(str(home), spark=spark) as db:
            db.sql("CREATE SOURCE orders (id BIGINT NOT NULL, note STRING)")
            db.sql(f"CREATE SINK k FROM orders WITH (connector = 'files', path = '{out}')")
            db.insert("orders", [{"id": 1}])
            db.run()
            db.insert("orders", [{"id": number, "note": os.urandom(1000).hex()} for number in range(2, 1000)])
            rest = fill(tmp_path / "disk")
            with pytest.raises(HomeUnwritable, match="No space left on device"):
                db.insert("orders", [{"id": 1000}])
            with pytest.raises(HomeUnwritable, match=r"catalog\.db cannot be written: .*full"):
                db.run()
            # Room for the catalog, and too little for the rows of the epoch: which of the two meets the end of it
            # first is the disk's affair.
            os.truncate(rest, rest.stat().st_size - MEGABYTE)
            with pytest.raises(PipelineFailed, match=r"No space left on device|catalog\.db cannot be written: .*full"):
                db.run()
            # What is committed can be read while the disk is full.
            assert ids(db) == [1]
            rest.unlink()
            db.insert("orders", [{"id": 1000}])
            db.run()
            assert ids(db) == list(range(1, 1001))
            assert sum(row["rows"] or 0 for row in db.status().to_pylist()) == 1000


def test_a_record_of_ten_megabytes_is_a_row_like_any_other(db: lm.Database, files: Path) -> None:
    put(files, "1.json", record(1), record(2, note="x" * 10 * MEGABYTE), record(3))
    db.run()
    found = db.sql("SELECT id, length(note) FROM orders ORDER BY id").fetchall()
    assert found == [(1, None), (2, 10 * MEGABYTE), (3, None)]


def test_a_broken_record_of_ten_megabytes_is_a_dead_letter_with_all_its_bytes(db: lm.Database, files: Path) -> None:
    put(files, "1.json", record(1), record(2, note="x" * 10 * MEGABYTE)[:-1], record(3))
    db.run()
    assert ids(db) == [1, 3]
    (letter,) = db.sql("SELECT length(value) FROM laminar_catalog.dead_letters").fetchall()
    assert letter == (10 * MEGABYTE + len(record(2, note="")) - 1,)


def test_invalid_utf8_is_a_dead_letter_with_its_bytes_and_the_rest_goes_on(db: lm.Database, files: Path) -> None:
    broken = b'{"id": 2, "note": "\xff\xfe"}'
    put(files, "1.json", record(1), broken, record(3))
    db.run()
    assert ids(db) == [1, 3]
    (letter,) = db.sql("SELECT value, reason FROM laminar_catalog.dead_letters").fetchall()
    assert bytes(letter[0]) == broken
    assert "UTF-8" in letter[1]
