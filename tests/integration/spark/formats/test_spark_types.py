"""Values of rarer types are exact in a session of the user's; what is refused is in `test_refused_types`."""

from __future__ import annotations

from datetime import time, timedelta
from typing import TYPE_CHECKING

import pytest

import laminae as lm

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EXACT = {
    "TIME": ("10:11:12.123456", time(10, 11, 12, 123456)),
    "TIME(3)": ("10:11:12.123", time(10, 11, 12, 123000)),
    "INTERVAL DAY TO SECOND": ("INTERVAL '1 02:03:04' DAY TO SECOND", timedelta(days=1, seconds=7384)),
    "CHAR(5)": ("ab", "ab"),
    "VARCHAR(3)": ("abcdef", "abcdef"),
    "VOID": (None, None),
}


def test_columns_of_every_other_type_are_exact_in_a_session_of_the_users(spark: SparkSession, tmp_path: Path) -> None:
    columns = {f"c{place}": (kind, *values) for place, (kind, values) in enumerate(EXACT.items())}
    declared = ", ".join(f"{name} {kind}" for name, (kind, _, _) in columns.items())
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql(f"CREATE SOURCE s (id INT, {declared}) WITH (connector = 'push')")
        db.sql("CREATE MATERIALIZED VIEW linear AS SELECT * FROM s")
        db.sql("CREATE MATERIALIZED VIEW times AS SELECT c0, COUNT(*) AS n, MAX(c1) AS m FROM s GROUP BY c0")
        db.sql("CREATE MATERIALIZED VIEW intervals AS SELECT c2, COUNT(*) AS n FROM s GROUP BY c2")
        for number in (1, 2):
            db.insert("s", [{"id": number, **{name: text for name, (_, text, _) in columns.items()}}])
            db.run()
        first, second = sorted(db.sql("SELECT * FROM s").fetchall())
        for name, found, (_, _, expected) in zip(columns, first[1:], columns.values(), strict=True):
            assert found == expected, name
        assert first[1:] == second[1:]
        assert sorted(db.sql("SELECT * FROM linear").fetchall()) == [first, second]
        changes = db.changes("linear").arrow().to_pylist()
        assert [tuple(row[name] for name in columns) for row in changes] == [first[1:], second[1:]]
        assert db.sql("SELECT * FROM times").fetchall() == [(time(10, 11, 12, 123456), 2, time(10, 11, 12, 123000))]
        assert db.sql("SELECT * FROM intervals").fetchall() == [(timedelta(days=1, seconds=7384), 2)]


@pytest.mark.parametrize("changelog", ["append", "upsert", "retract"])
def test_null_structs_whose_fields_are_required_are_kept(spark: SparkSession, tmp_path: Path, changelog: str) -> None:
    """A field that is NOT NULL has no value inside a struct that is NULL: Arrow refuses to cast such a column."""
    key = ", PRIMARY KEY (id)" if changelog == "upsert" else ""
    weight = ", weight_field = 'w'" if changelog == "retract" else ""
    columns = "st STRUCT<x: INT NOT NULL>, l ARRAY<STRUCT<z: INT NOT NULL>>, m MAP<STRING, STRUCT<z: INT NOT NULL>>"
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql(
            f"CREATE SOURCE s (id BIGINT NOT NULL, {columns}, w INT{key}) "
            f"WITH (connector = 'push', changelog = '{changelog}'{weight})"
        )
        db.sql("CREATE MATERIALIZED VIEW linear AS SELECT id, st, l, m FROM s")
        db.sql("CREATE MATERIALIZED VIEW grouped AS SELECT st, l, COUNT(*) AS n FROM s GROUP BY st, l")
        db.insert("s", [{"id": 1, "st": None, "w": 1}, {"id": 2, "st": {"x": 1}, "l": [None, {"z": 1}], "w": 1}])
        db.run()
        db.insert("s", [{"id": 3, "st": None, "m": {"k": None}, "w": 1}])
        db.run()
        assert sorted(db.sql("SELECT * FROM linear").fetchall(), key=lambda row: row[0]) == [
            (1, None, None, None),
            (2, {"x": 1}, [None, {"z": 1}], None),
            (3, None, None, [("k", None)]),
        ]
        rows = db.sql("SELECT * FROM grouped").fetchall()
        assert sorted(rows, key=lambda row: row[2]) == [({"x": 1}, [None, {"z": 1}], 1), (None, None, 2)]
