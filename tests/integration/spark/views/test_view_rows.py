"""A view is the sum of what it emitted: SELECT, snapshots of sinks, views over it and `changes` agree.

For every kind of view, with and without a backfill, also when the records it was computed from are gone.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import laminae as lm

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    "linear": "SELECT id, v * 2 AS w FROM {s}",
    "filtered": "SELECT id, v FROM {s} WHERE v > 1",
    "star": "SELECT * FROM {s}",
    "united": "SELECT id, v FROM {s} UNION ALL SELECT id, v + 10 AS v FROM {s} WHERE v > 1",
    "mixed": "SELECT v, COUNT(*) AS n FROM {s} GROUP BY v UNION ALL SELECT v, 0L AS n FROM {s}",
    "different": "SELECT DISTINCT v FROM {s}",
    "counted": "SELECT v, COUNT(*) AS n, MAX(id) AS m FROM {s} GROUP BY v",
    "having": "SELECT v, COUNT(*) AS n FROM {s} GROUP BY v HAVING COUNT(*) > 1",
    "every": "SELECT id, v FROM {s} EMIT EVERY '1' HOUR",
    "every_counted": "SELECT v, COUNT(*) AS n FROM {s} GROUP BY v EMIT EVERY '1' HOUR",
    "final": "SELECT id, v FROM {s} EMIT FINAL",
}
VIEWS = [
    *(("files", kind, "false") for kind in KINDS),
    *(("files", kind, "true") for kind in ("linear", "united", "mixed", "every", "counted")),
    ("files", "linear", "available"),
    *(("keyed", kind, "false") for kind in ("linear", "mixed", "every")),
    *(("keyed", kind, "true") for kind in ("linear", "final")),
]
"""(source, kind, backfill) over a log of rows, and over a table by key, which keeps its rows."""
MODELS = {
    "linear": lambda rows: [{"id": i, "w": v * 2} for i, v in rows],
    "filtered": lambda rows: [{"id": i, "v": v} for i, v in rows if v > 1],
    "star": lambda rows: [{"id": i, "v": v} for i, v in rows],
    "united": lambda rows: [{"id": i, "v": v + more} for i, v in rows for more in (0, 10) if not more or v > 1],
    "every": lambda rows: [{"id": i, "v": v} for i, v in rows],
    "final": lambda rows: [{"id": i, "v": v} for i, v in rows],
    "different": lambda rows: [{"v": v} for v in {v for _, v in rows}],
    "every_counted": lambda rows: [{"v": v, "n": n} for v, n in Counter(v for _, v in rows).items()],
}
FIRST, SECOND, THIRD = [(1, 1), (2, 2), (3, 2)], [(4, 2), (1, 3)], [(2, 7)]


@pytest.fixture
def kinds(db, inbox):
    """Two sources with rows from before the views were made."""
    db.sql(f"CREATE SOURCE files (id BIGINT, v BIGINT) WITH (connector = 'files', path = '{inbox}', format = 'json')")
    db.sql(
        "CREATE SOURCE keyed (id BIGINT NOT NULL, v BIGINT, PRIMARY KEY (id)) "
        "WITH (connector = 'push', changelog = 'upsert')"
    )
    _give(db, inbox, FIRST)
    for source, kind, mode in VIEWS:
        made = f"CREATE MATERIALIZED VIEW {source}_{kind}_{mode} WITH (backfill = '{mode}') AS "
        db.sql(made + KINDS[kind].format(s=source))
    for name in ("files_linear_false", "keyed_linear_true"):
        db.sql(f"CREATE MATERIALIZED VIEW above_{name} AS SELECT w, id FROM {name}")  # noqa: S608
    db.run()
    return db


def _give(db: lm.Database, inbox: Path, rows: list[tuple[int, int]]) -> None:
    records = [{"id": id_, "v": v} for id_, v in rows]
    text = "".join(json.dumps(each) + "\n" for each in records)
    (inbox / f"{rows}.json").write_text(text, encoding="utf-8")
    db.insert("keyed", records)
    db.run()


def _tables(db: lm.Database) -> dict[str, Counter]:
    """The rows of every view, by one query."""
    names = [*("_".join(each) for each in VIEWS), "above_files_linear_false", "above_keyed_linear_true"]
    options = "map('ignoreNullFields', 'false')"
    parts = [f"SELECT '{name}' AS name, to_json(struct(*), {options}) AS row FROM {name}" for name in names]  # noqa: S608
    found: dict[str, Counter] = {name: Counter() for name in names}
    for name, row in db.sql(" UNION ALL ".join(parts)).fetchall():
        found[name][_row(json.loads(row))] += 1
    return found


def _summed(db: lm.Database, view: str) -> Counter:
    """The changes of a view; a row that was only taken back is not shown."""
    total: Counter = Counter()
    for record in db.changes(view).arrow().to_pylist():
        weight = record["_weight"]
        total[_row({name: value for name, value in record.items() if not name.startswith("_")})] += weight
    return +total


def _row(values: dict[str, Any]) -> tuple:
    return tuple(sorted(values.items()))


def _refuse_differences(db: lm.Database, later: list[tuple[int, int]]) -> None:
    """`later` are the rows since the views were made."""
    tables = _tables(db)
    assert {name: (rows, _summed(db, name)) for name, rows in tables.items() if rows != _summed(db, name)} == {}
    for source, kind, mode in VIEWS:
        if source == "files" and kind in MODELS:
            model = MODELS[kind]([*(FIRST if mode != "false" else ()), *later])
            assert (kind, mode, tables[f"files_{kind}_{mode}"]) == (kind, mode, Counter(map(_row, model)))
    assert tables["above_files_linear_false"] == tables["files_linear_false"]
    assert tables["above_keyed_linear_true"] == tables["keyed_linear_true"]


def test_every_kind_of_view_shows_the_sum_of_its_changes_also_when_its_records_are_gone(kinds, inbox, spark, tmp_path):
    _give(kinds, inbox, SECOND)
    out = tmp_path / "out"
    kinds.sql(f"CREATE SINK k FROM files_linear_false WITH (connector = 'files', path = '{out}')")
    for file in inbox.iterdir():
        file.unlink()
    kinds.run()
    assert sorted(row["id"] for file in out.glob("*.parquet") for row in pq.read_table(file).to_pylist()) == [1, 4]
    _refuse_differences(kinds, SECOND)
    kinds.close()
    with lm.connect(str(tmp_path / "home"), spark=spark) as again:
        _give(again, inbox, THIRD)
        _refuse_differences(again, [*SECOND, *THIRD])


GROUPS = "SELECT v, COUNT(*) AS n, SUM(id) AS s FROM files GROUP BY v"
REPLACEMENTS = (
    "SELECT v, COUNT(*) AS n, SUM(id) AS s FROM files GROUP BY v HAVING COUNT(*) > 1",
    "SELECT v, SUM(id) AS s FROM files GROUP BY v",
    "WITH g AS (SELECT v, COUNT(*) AS n, SUM(id) AS s FROM files GROUP BY v) SELECT v, n FROM g WHERE s > 2",
    "SELECT SUM(id) AS s, v, v + 1 AS w FROM files GROUP BY v",
)


def test_a_view_that_is_replaced_over_the_same_groups_goes_on_with_its_state_and_reads_no_record(db, inbox):
    db.sql(f"CREATE SOURCE files (id BIGINT, v BIGINT) WITH (connector = 'files', path = '{inbox}', format = 'json')")
    for number in range(len(REPLACEMENTS)):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {GROUPS}")
    (inbox / "0.json").write_text('{"id": 1, "v": 1}\n{"id": 2, "v": 2}\n{"id": 3, "v": 2}\n', encoding="utf-8")
    db.run()
    (inbox / "0.json").unlink()
    for number, query in enumerate(REPLACEMENTS):
        told = db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v{number} AS {query}").fetchall()
        assert "continues with its state" in told[0][-1]
    db.run()
    (inbox / "1.json").write_text('{"id": 4, "v": 1}\n', encoding="utf-8")
    db.run()
    (inbox / "1.json").unlink()
    found = [sorted(db.sql(f"SELECT * FROM v{number}").fetchall()) for number in range(len(REPLACEMENTS))]  # noqa: S608
    assert found == [
        [(1, 2, 5), (2, 2, 5)],
        [(1, 5), (2, 5)],
        [(1, 2), (2, 2)],
        [(5, 1, 2), (5, 2, 3)],
    ]


def test_views_outlive_the_spool_and_a_changelog_that_was_collected(db, tmp_path):
    """A changelog that is the table of its view stays; `backfill = 'available'` takes what is left of the log."""
    db.sql("CREATE SOURCE s (id BIGINT, v BIGINT) WITH (connector = 'push', spool_retention = '1 day')")
    db.sql("SET changelog_retention = '1 day'")
    for name, query in (("linear", "SELECT id, v FROM s"), ("counted", "SELECT v, COUNT(*) AS n FROM s GROUP BY v")):
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for row in ({"id": 1, "v": 1}, {"id": 2, "v": 1}):
        db.insert("s", [row])
        db.run()
    _grow_old(tmp_path / "home")
    db.insert("s", [{"id": 3, "v": 2}])
    db.run()
    removed = {(each.kind, each.source) for each in db.gc()}
    assert {("spool", "s"), ("changes", "counted")} <= removed
    assert ("changes", "linear") not in removed
    assert sorted(db.sql("SELECT * FROM linear").fetchall()) == [(1, 1), (2, 1), (3, 2)]
    assert sorted(db.sql("SELECT * FROM counted").fetchall()) == [(1, 2), (2, 1)]
    for mode in ("true", "available"):
        made = f"CREATE MATERIALIZED VIEW {mode}_now WITH (backfill = '{mode}') AS SELECT id, v FROM s"  # noqa: S608
        db.sql(made)
    db.run()
    states = dict(db.sql("SELECT name, state FROM laminar_catalog.views").fetchall())
    assert (states["true_now"], states["available_now"]) == ("failed", "live")
    assert db.sql("SELECT * FROM available_now").fetchall() == [(3, 2)]


def _grow_old(home: Path) -> None:
    long_ago = time.time() - 3 * 24 * 3600
    for file in home.rglob("*"):
        if file.is_file() and file.suffix == ".parquet":
            os.utime(file, (long_ago, long_ago))
            os.utime(file.parent, (long_ago, long_ago))
