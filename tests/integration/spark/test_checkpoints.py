"""Spark's checkpoint and the catalog disagree: said before anything runs, nothing skipped, and mended by a repair."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import CheckpointDiverged

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
    with pytest.raises(CheckpointDiverged, match="of orders was committed with other offsets"):
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


def ids(db: lm.Database, source: str) -> list[int]:
    return [row[0] for row in db.sql(f"SELECT id FROM {source} ORDER BY id").fetchall()]  # noqa: S608
