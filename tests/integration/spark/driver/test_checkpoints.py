"""Spark's checkpoint and the catalog disagree: said before anything runs, nothing skipped, and mended by a repair."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import CheckpointDiverged
from laminae.spark.epoch.offsets import refuse_divergence
from tests.support.crashing import EpochCrashError, crash_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[lm.Database]:
    """Two sources with as many epochs each; the one called other is an item further."""
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql("CREATE SOURCE orders (id INT); CREATE SOURCE other (id INT)")
        database.insert("other", [{"id": 0}])
        for number in (1, 2, 3):
            database.insert("orders", [{"id": number}])
            database.insert("other", [{"id": number}])
            database.run()
            if number == 1:
                shutil.copytree(checkpoint(tmp_path), tmp_path / "old")
        yield database


def checkpoint(tmp_path: Path, source: str = "orders") -> Path:
    return tmp_path / "home" / "sources" / {"orders": "1", "other": "2"}[source] / "checkpoint"


def deleted(tmp_path: Path) -> None:
    shutil.rmtree(checkpoint(tmp_path))


def restored_from_old(tmp_path: Path) -> None:
    deleted(tmp_path)
    shutil.copytree(tmp_path / "old", checkpoint(tmp_path))


def of_another_source(tmp_path: Path) -> None:
    """It has as many batches, which end elsewhere."""
    deleted(tmp_path)
    shutil.copytree(checkpoint(tmp_path, "other"), checkpoint(tmp_path))


def ahead_of_the_catalog(tmp_path: Path) -> None:
    """As when the home was restored from a backup and its checkpoint was not."""
    for log in ("offsets", "commits"):
        shutil.copy(checkpoint(tmp_path) / log / "2", checkpoint(tmp_path) / log / "3")
    offsets = checkpoint(tmp_path) / "offsets" / "3"
    offsets.write_text(offsets.read_text().replace('{"item": 3}', '{"item": 4}'))


@pytest.mark.parametrize("trouble", [deleted, restored_from_old, of_another_source, ahead_of_the_catalog])
def test_a_checkpoint_that_diverged_stops_its_source_alone_and_is_repaired(
    db: lm.Database, tmp_path: Path, trouble: Callable[[Path], None]
) -> None:
    trouble(tmp_path)
    db.insert("orders", [{"id": 4}])
    db.insert("other", [{"id": 4}])
    with pytest.raises(CheckpointDiverged, match="of orders was committed with different offsets"):
        db.run()
    assert ids(db, "orders") == [1, 2, 3]
    assert ids(db, "other") == [0, 1, 2, 3, 4]
    assert db.repair("orders") == 2
    db.insert("orders", [{"id": 5}])
    db.run()
    assert ids(db, "orders") == [1, 2, 3, 4, 5]


def test_a_checkpoint_that_diverged_is_noticed_without_new_records(db: lm.Database, tmp_path: Path) -> None:
    ahead_of_the_catalog(tmp_path)
    pipeline = db.start("50 milliseconds")
    try:
        states = {status.source: (status.state, status.problem or "") for status in pipeline.status()}
        assert states["orders"][0] == "failed"
        assert "the catalog is at 2" in states["orders"][1]
        assert states["other"] == ("running", "")
    finally:
        pipeline.stop()


def text(log: str, content: bytes | None) -> Callable[[Path], None]:
    def trouble(tmp_path: Path) -> None:
        file = checkpoint(tmp_path) / log
        # Spark would notice by the checksum, too.
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)

    return trouble


FACTS = b'{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'
UNREADABLE = {
    "metadata is gone": text("metadata", None),
    "metadata is empty": text("metadata", b""),
    "metadata is no JSON": text("metadata", b"{"),
    "metadata has no id": text("metadata", b'{"name": 1}'),
    "metadata is no text": text("metadata", b"\xff\xfe"),
    "offsets are gone": text("offsets/2", None),
    "offsets are empty": text("offsets/2", b""),
    "offsets are no text": text("offsets/2", b"\xff\xfe\x00"),
    "offsets are of another version": text("offsets/2", b"v9\n{}\n{}"),
    "offsets are cut": text("offsets/2", b"v1\n" + FACTS),
    "offsets have no facts": text("offsets/2", b'v1\n{"conf\n{"item": 3}'),
    "offsets have no offset": text("offsets/2", b"v1\n" + FACTS + b"\n{"),
    "offsets of the batch before are gone": text("offsets/1", None),
    "offsets of the batch before are garbled": text("offsets/1", b"?"),
    "commits are empty": text("commits/2", b""),
    "commits are no JSON": text("commits/2", b"v1\n{"),
    "commits are no text": text("commits/2", b"\xff"),
}


def test_a_checkpoint_that_cannot_be_read_stops_its_source_alone_and_is_repaired(
    db: lm.Database, tmp_path: Path
) -> None:
    for trouble in UNREADABLE.values():
        shutil.copytree(checkpoint(tmp_path), tmp_path / "whole")
        trouble(tmp_path)
        with pytest.raises(CheckpointDiverged, match="of orders was"):
            refuse_divergence(str(checkpoint(tmp_path)), "orders", db._catalog.last_batch(1))
        shutil.rmtree(checkpoint(tmp_path))
        (tmp_path / "whole").rename(checkpoint(tmp_path))
    UNREADABLE["metadata is gone"](tmp_path)
    db.insert("orders", [{"id": 4}])
    db.insert("other", [{"id": 4}])
    with pytest.raises(CheckpointDiverged, match="of orders was"):
        db.run()
    assert ids(db, "orders") == [1, 2, 3]
    assert ids(db, "other") == [0, 1, 2, 3, 4]
    assert db.repair("orders") == 2
    db.run()
    assert ids(db, "orders") == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["repair", "restore"])
def test_a_crash_in_the_first_epoch_after_a_rebuilt_checkpoint_is_gone_over(db: lm.Database, how: str) -> None:
    db.savepoint("now")
    if how == "repair":
        assert db.repair("orders") == 2
    else:
        db.restore("now")
    db.insert("orders", [{"id": 4}])
    with crash_at("epoch planned", EpochCrashError):
        db.run()
    db.run()
    assert ids(db, "orders") == [1, 2, 3, 4]


def ids(db: lm.Database, source: str) -> list[int]:
    return [row[0] for row in db.sql(f"SELECT id FROM {source} ORDER BY id").fetchall()]  # noqa: S608
