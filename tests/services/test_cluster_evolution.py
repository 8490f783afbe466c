"""Live evolution on a real cluster: executors in processes of their own, the catalog in PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.catalog import open_catalog
from tests.services.spark_cluster import SETTINGS
from tests.support.driving import Driver
from tests.support.live_changes import SOURCE, VERSIONS, assert_delivered_once, change_and_insert
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.chaos, pytest.mark.postgres]

WORK_SECONDS = 300.0


def test_twenty_changes_lose_no_row_on_a_cluster_and_restart_nothing(
    tmp_path: Path, spark_cluster: str, postgres_url: str
) -> None:
    home, out = str(tmp_path / "home"), tmp_path / "out"
    with lm.connect(home, catalog=postgres_url) as db, closing(open_catalog(home, postgres_url)) as catalog:
        db.sql(SOURCE)
        db.sql(f"CREATE SINK k FROM orders WITH (connector = 'files', format = 'json', path = '{out}')")
        config = (f"spark.master={spark_cluster}", *SETTINGS)
        driver = Driver(catalog, home, tmp_path / "driver.log", postgres_url, config).start()
        try:
            until(lambda: catalog.sinks()[0].state == "live", WORK_SECONDS, "the sink is live")
            sent = change_and_insert(home, postgres_url)
            (source,) = catalog.sources()
            assert source.version == VERSIONS
            until(lambda: catalog.epoch_totals(source.id).rows == len(sent), WORK_SECONDS, "every row is committed")
            until(lambda: catalog.sinks()[0].progress == catalog.last_epoch(), WORK_SECONDS, "every row is delivered")
            driver.stop()
        except BaseException as problem:
            problem.add_note(driver.tail())
            driver.sweep()
            raise
    first, last = driver.runs()
    assert first["orders"] == last["orders"]
    assert_delivered_once(out, sent, home, postgres_url)
