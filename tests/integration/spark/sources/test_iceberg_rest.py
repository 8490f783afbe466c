"""Iceberg tables of a real REST catalog, as sources and sinks: it goes away, is mute, loses answers, or refuses."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.types import LongType, StringType

from laminae.errors import DeliveryFailed, SourceUnavailable
from laminae.net.backoff import Backoff
from laminae.spark.sources.iceberg.rest_catalog import PatientCatalog
from laminae.spark.sources.iceberg.table import iceberg_table
from tests.services.fixtures import said_if_missing
from tests.services.iceberg_rest import running_iceberg_rest
from tests.services.processes import free_port
from tests.support.forwarding import forwarding
from tests.support.iceberg import put, rest_lake
from tests.support.iceberg_changes import MODES, ROWS, assert_follows
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import laminae as lm
    from laminae.spark.driver.pipeline import Pipeline
    from tests.services.iceberg_rest import IcebergRest
    from tests.support.iceberg import Lake

pytestmark = pytest.mark.services

WAIT_SECONDS = 120.0
# Less than what the gateway keeps a request for.
SOON_SECONDS = 30.0
COLUMNS = {"id": pa.int64(), "amount": pa.int32(), "note": pa.string()}
TOKEN = "a-token-that-is-shown-nowhere"


@pytest.fixture
def lake(iceberg_rest: IcebergRest) -> Lake:
    return rest_lake(iceberg_rest)


@contextmanager
def running(db: lm.Database) -> Iterator[Pipeline]:
    pipeline = db.start("100 milliseconds")
    try:
        yield pipeline
    finally:
        pipeline.stop()


def rows(db: lm.Database, columns: str, relation: str = "s") -> list[tuple[object, ...]]:
    return db.sql(f"SELECT {columns} FROM {relation} ORDER BY ALL").fetchall()  # noqa: S608  # fixed by each test


def held(lake: Lake, name: str, *columns: str) -> list[tuple[object, ...]]:
    found = lake.load(name).scan(selected_fields=columns).to_arrow()
    return sorted((tuple(row[column] for column in columns) for row in found.to_pylist()), key=str)


def sinks(db: lm.Database) -> dict[str, tuple[str, int, str | None]]:
    """State, lag and detail of each."""
    found = [row for row in db.status().to_pylist() if row["kind"] == "sink"]
    return {row["name"]: (row["state"], row["lag"], row["detail"]) for row in found}


@pytest.mark.parametrize("mode", range(len(MODES)), ids=MODES.__getitem__)
@pytest.mark.parametrize("row", ROWS)
def test_the_evolution_table_is_that_of_other_catalogs(db: lm.Database, lake: Lake, row: str, mode: int) -> None:
    assert_follows(db, lake, row, mode)


def test_a_running_source_follows_each_change_that_is_made_through_the_catalog(db: lm.Database, lake: Lake) -> None:
    table = put(lake.table("orders", COLUMNS), id=[1, 2], amount=[10, None], note=["a", None])
    given = lake.options("orders", evolve="auto")
    db.sql(f"CREATE SOURCE s (id BIGINT, amount INT, note STRING) WITH {given}")
    with running(db) as pipeline:
        pipeline.process_all_available()
        (before,) = pipeline.status()
        assert rows(db, "id, amount, note") == [(1, 10, "a"), (2, None, None)]
        put(table, id=[3], amount=[30], note=["c"])
        pipeline.process_all_available()
        assert rows(db, "id, amount, note")[2:] == [(3, 30, "c")]
        with table.update_schema() as update:
            update.add_column("city", StringType())
        put(table, id=[4], city=["Rome"])
        pipeline.process_all_available()
        assert rows(db, "id, amount, city")[2:] == [(3, 30, None), (4, None, "Rome")]
        with table.update_schema() as update:
            update.rename_column("amount", "cents")
        put(table, id=[5], cents=[50])
        pipeline.process_all_available()
        assert rows(db, "id, cents")[2:] == [(3, 30), (4, None), (5, 50)]
        with table.update_schema() as update:
            update.update_column("cents", LongType())
        put(table, id=[6], cents=[2**40])
        pipeline.process_all_available()
        assert rows(db, "id, cents")[4:] == [(5, 50), (6, 2**40)]
        # Under the mode it had so far, a dropped column would be kept.
        db.sql("ALTER SOURCE s SET COMPATIBILITY = FORWARD")
        with table.update_schema() as update:
            update.delete_column("note")
        put(table, id=[7], cents=[70], city=["Pisa"])
        pipeline.process_all_available()
        (after,) = pipeline.status()
    assert after.run_id == before.run_id
    assert db.schema("s").names == ["id", "cents", "city"]
    assert rows(db, "*") == [
        (1, 10, None), (2, None, None), (3, 30, None), (4, None, "Rome"),
        (5, 50, None), (6, 2**40, None), (7, 70, "Pisa"),
    ]  # fmt: skip
    assert rows(db, "reason", "laminar_catalog.dead_letters") == []


def test_sinks_take_on_the_columns_of_their_views(db: lm.Database, lake: Lake) -> None:
    db.sql("CREATE SOURCE orders (id BIGINT, customer STRING, amount INT)")
    db.sql("CREATE MATERIALIZED VIEW large AS SELECT * FROM orders WHERE amount > 1")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    db.sql(f"CREATE SINK appended FROM large WITH {lake.options('large', mode='append')}")
    db.sql(f"CREATE SINK upserted FROM totals WITH {lake.options('totals', mode='upsert')}")
    with running(db) as pipeline:
        db.insert("orders", [{"id": 1, "customer": "a", "amount": 1}, {"id": 2, "customer": "b", "amount": 2}])
        pipeline.process_all_available()
        assert held(lake, "large", "id", "amount") == [(2, 2)]
        assert held(lake, "totals", "customer", "total") == [("a", 1), ("b", 2)]
        db.sql("ALTER SOURCE orders ADD COLUMN city STRING")
        db.sql(
            "CREATE OR REPLACE MATERIALIZED VIEW totals AS "
            "SELECT customer, SUM(amount) AS total, MAX(city) AS city FROM orders GROUP BY customer"
        )
        db.insert("orders", [{"id": 3, "customer": "a", "amount": 10, "city": "Rome"}])
        pipeline.process_all_available()
    assert held(lake, "large", "id", "amount", "city") == [(2, 2, None), (3, 10, "Rome")]
    assert held(lake, "totals", "customer", "total", "city") == [("a", 11, "Rome"), ("b", 2, None)]


def test_a_catalog_that_goes_away_between_epochs_loses_and_doubles_nothing(db: lm.Database, tmp_path: Path) -> None:
    place, port = tmp_path / "catalog", free_port()
    db.sql("CREATE SOURCE inserted (id BIGINT)")
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT id, COUNT(*) AS n FROM inserted GROUP BY id")
    with said_if_missing(), running_iceberg_rest(place, port) as server:
        lake = rest_lake(server)
        table = put(lake.table("orders", COLUMNS), id=[1], amount=[1])
        db.sql(f"CREATE SOURCE s (id BIGINT, amount INT) WITH {lake.options('orders')}")
        db.sql(f"CREATE SINK copied FROM s WITH {lake.options('copied')}")
        db.sql(f"CREATE SINK counted FROM counts WITH {lake.options('counted', mode='upsert')}")
        pipeline = db.start("100 milliseconds")
        db.insert("inserted", [{"id": 1}, {"id": 2}])
        pipeline.process_all_available()
        put(table, id=[2], amount=[2])
        pipeline.process_all_available()
    before = {status.source: status.run_id for status in pipeline.status()}

    def problem(source: str) -> str:
        (detail,) = [row["detail"] for row in db.status().to_pylist() if row["name"] == source]
        return str(detail)

    try:
        db.insert("inserted", [{"id": 1}])
        until(lambda: sinks(db)["counted"][:2] == ("failing", 1), WAIT_SECONDS, "the sink lags")
        assert "Sink counted cannot write to table" in str(sinks(db)["counted"][2])
        until(lambda: "SOURCE_UNAVAILABLE" in problem("s"), WAIT_SECONDS, "the source is seen to wait")
        db.insert("inserted", [{"id": 3}])
        until(lambda: sinks(db)["counted"][1] == 2, WAIT_SECONDS, "the other source goes on")
        assert "UNAVAILABLE" not in problem("inserted")
        with running_iceberg_rest(place, port):
            with table.update_schema() as update:
                update.update_column("amount", LongType())
            put(table, id=[3], amount=[2**40])
            until(lambda: len(held(lake, "copied", "id")) == 3, WAIT_SECONDS, "the source goes on")
            until(lambda: sinks(db)["counted"][:2] == ("live", 0), WAIT_SECONDS, "the sink has caught up")
            pipeline.process_all_available()
            after = {status.source: status.run_id for status in pipeline.status()}
            assert held(lake, "copied", "id", "amount") == [(1, 1), (2, 2), (3, 2**40)]
            assert held(lake, "counted", "id", "n") == [(1, 2), (2, 1), (3, 1)]
    finally:
        pipeline.stop()
    assert before == after
    assert rows(db, "id, amount") == [(1, 1), (2, 2), (3, 2**40)]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_commit_whose_answer_is_lost_is_there_once(
    db: lm.Database, iceberg_rest: IcebergRest, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr("laminae.spark.sinks.outbox.BACKOFF", Backoff(first=0.0))
    monkeypatch.setattr("laminae.spark.driver.pipeline.WATCH_SECONDS", WAIT_SECONDS)
    db.sql("CREATE SOURCE orders (id BIGINT)")
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id")
    relation = {"append": "orders", "upsert": "counts"}[mode]
    with forwarding(iceberg_rest.address) as gateway:
        lake = rest_lake(iceberg_rest)
        given = lake.options("out", mode=mode, **{"catalog.uri": gateway.address})
        db.sql(f"CREATE SINK k FROM {relation} WITH {given}")
        db.insert("orders", [{"id": 1}])
        db.run()
        gateway.lose = "/tables/out"
        db.insert("orders", [{"id": 1}, {"id": 2}])
        with pytest.raises(DeliveryFailed):
            db.run()
        assert (gateway.lose, sinks(db)["k"][:2]) == (None, ("failing", 1))
        assert (2,) in held(lake, "out", "id")
        db.insert("orders", [{"id": 3}])
        db.run()
        assert sinks(db)["k"][:2] == ("live", 0)
    columns = {"append": ("id",), "upsert": ("id", "n")}[mode]
    assert held(lake, "out", *columns) == {"append": [(1,), (1,), (2,), (3,)], "upsert": [(1, 2), (2, 1), (3, 1)]}[mode]


def test_a_mute_catalog_is_waited_for_no_longer_than_it_takes_to_say_so(
    db: lm.Database, iceberg_rest: IcebergRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laminae.spark.sources.iceberg.rest_catalog.ANSWER_SECONDS", 1.0)
    lake = rest_lake(iceberg_rest)
    table = put(lake.table("orders", COLUMNS), id=[1], amount=[10])
    with forwarding(iceberg_rest.address) as gateway:
        reached = {"catalog.uri": gateway.address}
        db.sql(f"CREATE SOURCE s (id BIGINT, amount INT) WITH {lake.options('orders', **reached)}")
        db.sql("CREATE SOURCE inserted (id BIGINT)")
        db.sql(f"CREATE SINK k FROM inserted WITH {lake.options('out', **reached)}")
        with running(db) as pipeline:
            db.insert("inserted", [{"id": 1}])
            pipeline.process_all_available()
            gateway.open.clear()
            put(table, id=[2], amount=[20])
            db.insert("inserted", [{"id": 2}])
            until(lambda: "Read timed out" in str(sinks(db)["k"][2]), SOON_SECONDS, "the sink says so")
            until(lambda: "Read timed out" in str(pipeline.status()), SOON_SECONDS, "the source says so")
            gateway.open.set()
            until(lambda: sinks(db)["k"][:2] == ("live", 0), WAIT_SECONDS, "the sink has caught up")
            pipeline.process_all_available()
    assert rows(db, "id, amount") == [(1, 10), (2, 20)]
    assert held(lake, "out", "id") == [(1,), (2,)]


def test_a_catalog_of_pyicebergs_own_configuration_is_reached_with_the_same_patience(
    iceberg_rest: IcebergRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__CONFIGURED__URI", iceberg_rest.address)
    found = iceberg_table({"table": "shop.orders", "catalog": "configured"}, "s").opened()
    assert isinstance(found, PatientCatalog)


def test_a_token_is_sent_each_time_and_shown_nowhere(
    db: lm.Database,
    iceberg_rest: IcebergRest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    monkeypatch.setenv("LAKE_TOKEN", TOKEN)
    monkeypatch.setattr("laminae.spark.sinks.outbox.BACKOFF", Backoff(first=0.0))
    lake = rest_lake(iceberg_rest)
    table = put(lake.table("orders", COLUMNS), id=[1], amount=[10])
    with forwarding(iceberg_rest.address) as gateway:
        by_env = {"catalog.uri": gateway.address, "catalog.token": "${env:LAKE_TOKEN}"}
        by_file = {"catalog.uri": gateway.address, "catalog.token": f"${{file:{secret}}}"}
        db.sql(f"CREATE SOURCE s (id BIGINT, amount INT) WITH {lake.options('orders', **by_env)}")
        db.sql("CREATE SOURCE inserted (id BIGINT)")
        db.sql(f"CREATE SINK k FROM inserted WITH {lake.options('out', **by_file)}")
        db.insert("inserted", [{"id": 1}])
        db.run()
        assert (rows(db, "id, amount"), held(lake, "out", "id")) == ([(1, 10)], [(1,)])
        assert set(gateway.authorizations) == {f"Bearer {TOKEN}"}
        gateway.refuses = True
        put(table, id=[2])
        db.insert("inserted", [{"id": 2}])
        with pytest.raises(SourceUnavailable, match=r"NotAuthorizedException: Bearer .* is not known here") as refused:
            db.run()
        assert "NotAuthorizedException: Bearer" in str(sinks(db)["k"][2])
        said = str(db.status().to_pylist())
        gateway.refuses = False
        gateway.authorizations.clear()
        secret.write_text("another-token")
        monkeypatch.setenv("LAKE_TOKEN", "another-token")
        db.run()
        assert (rows(db, "id, amount"), held(lake, "out", "id")) == ([(1, 10), (2, None)], [(1,), (2,)])
        assert set(gateway.authorizations) == {"Bearer another-token"}
    known = [rows(db, "*", f"laminar_catalog.{name}") for name in ("sources", "sinks", "dead_letters")]
    shown = [str(refused.getrepr(chain=True)), said, *map(str, known), caplog.text]
    assert [text for text in shown if TOKEN in text] == []
    kept = [file for file in (tmp_path / "home").rglob("*") if file.is_file() and TOKEN.encode() in file.read_bytes()]
    assert kept == []
