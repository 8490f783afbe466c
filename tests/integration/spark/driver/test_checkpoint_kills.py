"""kill -9 of the driver in the first epoch after a checkpoint was rebuilt: the next start goes on, every row once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import laminae as lm
from tests.support.driving import Driver

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# Spark's log has the batch and nothing is done of it; then all is done of it and only Spark does not know.
POINTS = ("epoch planned", "epoch committed")
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(id) AS ids FROM orders"


@pytest.mark.parametrize("how", ["repair", "restore"])
def test_a_driver_killed_in_the_first_epoch_after_a_rebuilt_checkpoint_is_succeeded(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    home, out = str(tmp_path / "home"), tmp_path / "out"
    with lm.connect(home, spark=spark) as db:
        db.sql("CREATE SOURCE orders (id INT)")
        db.sql(TOTALS)
        db.sql(f"CREATE SINK k FROM orders WITH (connector = 'files', format = 'json', path = '{out}')")
        for number in (1, 2):
            db.insert("orders", [{"id": number}])
            db.run()
        if how == "repair":
            assert db.repair("orders") == 1
        else:
            db.savepoint("now")
            db.insert("orders", [{"id": 100}])
            db.run()
            db.restore("now")
        db.insert("orders", [{"id": 3}])
        for life, point in enumerate(POINTS):
            driver = Driver(db._catalog, home, tmp_path / f"driver-{life}.log", kill_at=point).start()
            try:
                driver.await_own_kill()
            except BaseException:
                driver.sweep()
                raise
        db.insert("orders", [{"id": 4}])
        db.run()
        # What was inserted behind the savepoint comes again with the source's log, once.
        expected = [1, 2, 3, 4, 100] if how == "restore" else [1, 2, 3, 4]
        assert [row[0] for row in db.sql("SELECT id FROM orders ORDER BY id").fetchall()] == expected
        assert db.sql("SELECT * FROM totals").fetchall() == [(len(expected), sum(expected))]
        assert db.sql("SELECT rows FROM laminar_catalog.epochs").fetchall()
    lines = sorted(line for file in out.iterdir() for line in file.read_text().splitlines())
    assert lines == sorted(f'{{"id":{number}}}' for number in expected)
