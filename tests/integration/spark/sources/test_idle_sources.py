"""The watermark of a view over two sources never goes back: what was closed while one of them was idle stays closed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.errors import InvalidOption
from laminae.spark.driver import pipeline

STRATEGIES = {"closing": "ON WINDOW CLOSE", "marked": "ON WATERMARK", "finals": "FINAL", "every": "EVERY '1' HOUR"}


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The driver's, which decides who is idle."""
    made = Clock()
    monkeypatch.setattr(pipeline, "now", made)
    return made


def give(db: lm.Database, **seconds: list[int]) -> None:
    for source, times in seconds.items():
        db.insert(source, [{"at": f"2024-01-01T00:00:{second:02}Z"} for second in times])
    db.run()


def windows(db: lm.Database, view: str) -> list[tuple[int, int]]:
    return sorted((start.second, n) for start, n in db.sql(f"SELECT start, n FROM {view}").fetchall())  # noqa: S608


def test_a_source_that_comes_back_from_being_idle_corrects_no_closed_window(db, clock, tmp_path, spark):
    for source in ("a", "b"):
        db.sql(
            f"CREATE SOURCE {source} (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '0' SECOND) "
            "WITH (connector = 'push', idle_timeout = '1 minute')"
        )
    both = "(SELECT at FROM a UNION ALL SELECT at FROM b)"
    for view, strategy in STRATEGIES.items():
        db.sql(
            f"CREATE MATERIALIZED VIEW {view} AS SELECT window.start AS start, COUNT(*) AS n FROM {both} "  # noqa: S608
            f"GROUP BY window(at, '10 seconds') EMIT {strategy}"
        )
    out = tmp_path / "out"
    db.sql(f"CREATE SINK k FROM closing WITH (connector = 'files', path = '{out}', mode = 'append')")
    give(db, a=[1], b=[2])
    clock.now += timedelta(minutes=2)
    give(db, a=[25])
    assert {view: windows(db, view) for view in STRATEGIES if view != "every"} == {
        "closing": [(0, 2)],
        "marked": [(0, 2)],
        "finals": [(0, 2)],
    }
    db.close()
    clock.now += timedelta(seconds=1)
    with lm.connect(str(tmp_path / "home"), spark=spark) as again:
        give(again, b=[3, 27])
        clock.now += timedelta(seconds=1)
        give(again, a=[40], b=[41])
        late = again.sql("SELECT view_name, row FROM laminar_catalog.late_rows").fetchall()
        assert {(name, row) for name, row in late} == {
            (view, '{"at":"2024-01-01T00:00:03.000Z"}') for view in STRATEGIES if view != "every"
        }
        for view in STRATEGIES.keys() - {"every"}:
            assert [op for _, op, *_ in again.changes(view).fetchall()] == ["+I", "+I"]
            assert windows(again, view) == [(0, 2), (20, 2)]
        # It has never shown a window as closed, and its watermark waited for b.
        assert windows(again, "every") == [(0, 3), (20, 2), (40, 2)]
        delivered = [row for file in sorted(out.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
        assert sorted((row["start"].second, row["n"]) for row in delivered) == windows(again, "closing")


def test_final_without_a_window_corrects_itself_in_a_later_run_and_takes_no_append_sink(db, tmp_path):
    db.sql("CREATE SOURCE s (k STRING) WITH (connector = 'push')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT FINAL")
    db.sql("CREATE MATERIALIZED VIEW rows AS SELECT k FROM s EMIT FINAL")
    with pytest.raises(InvalidOption, match="view v retracts rows"):
        db.sql(f"CREATE SINK x FROM v WITH (connector = 'files', path = '{tmp_path / 'x'}', mode = 'append')")
    out = {name: tmp_path / name for name in ("v", "rows")}
    db.sql(f"CREATE SINK kv FROM v WITH (connector = 'files', path = '{out['v']}')")
    db.sql(f"CREATE SINK kr FROM rows WITH (connector = 'files', path = '{out['rows']}', mode = 'append')")
    for _ in range(2):
        db.insert("s", [{"k": "a"}])
        db.run()
    changes = [(op, k, n) for _, op, _, _, k, n in db.changes("v").fetchall()]
    assert changes == [("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 2)]
    assert db.sql("SELECT k, n FROM v").fetchall() == [("a", 2)]
    delivered = {
        name: [row for file in sorted(path.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
        for name, path in out.items()
    }
    assert sum(row["_weight"] * row["n"] for row in delivered["v"]) == 2
    # Nothing takes back a row of a log: those of the second run are added.
    assert [row["k"] for row in delivered["rows"]] == ["a", "a"]
    assert db.sql("SELECT k FROM rows").fetchall() == [("a",), ("a",)]


def test_the_watermark_of_a_running_view_stays_when_an_idle_source_comes_back(db, clock):
    """Also without a strategy that holds rows back: what was late while the source was left out is late afterwards."""
    for source in ("a", "b"):
        db.sql(
            f"CREATE SOURCE {source} (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '0' SECOND) "
            "WITH (connector = 'push', idle_timeout = '1 minute')"
        )
    both = "(SELECT at FROM a UNION ALL SELECT at FROM b)"
    db.sql(
        f"CREATE MATERIALIZED VIEW v AS SELECT window.start AS start, COUNT(*) AS n FROM {both} "  # noqa: S608
        "GROUP BY window(at, '10 seconds')"
    )
    running = db.start("0 seconds")
    try:
        for step in ({"a": [1], "b": [2]}, {"a": [25]}, {"b": [3]}, {"b": [15, 27]}):
            for source, times in step.items():
                db.insert(source, [{"at": f"2024-01-01T00:00:{second:02}Z"} for second in times])
            running.process_all_available()
            if "a" in step:
                clock.now += timedelta(seconds=40)
    finally:
        running.stop()
    assert windows(db, "v") == [(0, 2), (20, 2)]
    late = db.sql("SELECT row FROM laminar_catalog.late_rows ORDER BY row").fetchall()
    assert late == [('{"at":"2024-01-01T00:00:03.000Z"}',), ('{"at":"2024-01-01T00:00:15.000Z"}',)]
