"""What `status` says of views and of the sinks behind them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import laminae as lm
from laminae.catalog.updates import AdvanceOwner, NextEpoch, SetSinkProgress, SetViewState


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as found:
        found.sql("CREATE SOURCE orders (id BIGINT)")
        found.sql("CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM orders")
        found.sql(f"CREATE SINK k FROM counted WITH (connector = 'files', path = '{tmp_path / 'out'}')")
        yield found


def test_a_sink_of_a_view_lags_by_the_epochs_with_changes_that_it_has_not_delivered(db):
    catalog, view, sink = db._catalog, db._engine.view("counted"), db._engine.sink("k")
    catalog.commit([SetViewState(view.id, "live"), SetSinkProgress(sink.id, 0, "live")])
    last = 0
    for rows in (1, 0, 2, 2):
        advance = AdvanceOwner(view.id, view.name, last, (), ("f",) * rows, rows, pa.schema([]), refused=rows)
        catalog.commit([NextEpoch(), advance])
        last = catalog.last_advance(view.id)
    assert lag(db) == 3
    catalog.commit([SetSinkProgress(sink.id, 3, "live")])
    assert lag(db) == 1
    (shown,) = [row for row in db.status().to_pylist() if row["kind"] == "view"]
    assert (shown["name"], shown["state"], shown["dead_letters"]) == ("counted", "live", 5)
    assert shown["detail"] == "from orders"


def lag(db) -> int:
    (row,) = [row for row in db.status().to_pylist() if row["kind"] == "sink"]
    return row["lag"]
