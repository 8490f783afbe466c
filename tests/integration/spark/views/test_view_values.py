"""Values and keys at the edge, through Spark, in a session that shuffles otherwise than views need it."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.spark.views import group_by as grouping

MOST, LONGEST, LEAST = 2**63 - 1, Decimal("9" * 38), Decimal("-" + "9" * 38)
SCHEMA = pa.schema(
    [("k", pa.string()), ("b", pa.int64()), ("d", pa.decimal128(38, 0)), ("x", pa.float64()), ("w", pa.int32())]
)
VIEWS = {
    "longs": "SELECT k, SUM(b) AS s FROM t GROUP BY k",
    "decimals": "SELECT k, SUM(d) AS s FROM t GROUP BY k",
    "floats": "SELECT x, COUNT(*) AS n FROM t GROUP BY x",
    "float_sums": "SELECT k, SUM(x) AS s, MAX(x) AS most, MIN(x) AS least FROM t GROUP BY k",
    "beside": "SELECT COUNT(*) AS n FROM t",
}


def put(directory, name: str, *rows: tuple) -> None:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), directory / f"{name}.parquet")


def rows(db, text: str) -> list[tuple]:
    return sorted(db.sql(text).fetchall(), key=repr)


@pytest.fixture
def other_session(spark):
    """A user's session, with settings that would spread and join the shards of a view."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "7")
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "true")
    return session


def test_values_at_the_edge_are_exact_and_overflow_names_view_key_and_value(other_session, tmp_path, inbox):
    with lm.connect(str(tmp_path / "home"), spark=other_session) as db:
        db.sql(
            "CREATE SOURCE t (k STRING, b BIGINT, d DECIMAL(38, 0), x DOUBLE, w INT) WITH (connector = 'files', "
            f"format = 'parquet', path = '{inbox}', changelog = 'retract', weight_field = 'w')"
        )
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        inf, nan = math.inf, math.nan
        put(
            inbox,
            "1",
            ("max", MOST, LONGEST, -0.0, 1),
            ("max", 1, Decimal(1), 0.0, 1),
            ("max", 1, Decimal(1), 0.0, -1),
            ("min", -MOST - 1, LEAST, nan, 1),
            ("min", -1, LEAST, 1.5, 2),
            ("min", -1, LEAST, 1.5, -2),
            (None, 5, Decimal(5), inf, 1),
            (None, None, None, -nan, 1),
            ("never", 1, Decimal(1), 7.0, -1),
            ("zero", 1, Decimal(1), 8.0, 0),
        )
        db.run()
        assert rows(db, "SELECT * FROM longs") == [("max", MOST), ("min", -MOST - 1), (None, 5)]
        assert rows(db, "SELECT * FROM decimals") == [("max", LONGEST), ("min", LEAST), (None, Decimal(5))]
        assert [(repr(x), n) for x, n in rows(db, "SELECT * FROM floats")] == [("0.0", 1), ("inf", 1), ("nan", 2)]
        shown = {k: tuple(map(repr, rest)) for k, *rest in rows(db, "SELECT * FROM float_sums")}
        assert shown == {"max": ("0.0", "0.0", "0.0"), "min": ("nan",) * 3, None: ("nan", "nan", "inf")}
        # The one that was taken back and never came counts against the others.
        assert rows(db, "SELECT * FROM beside") == [(3,)]
        told = "SELECT relation, negative_keys FROM laminar_catalog.anomalies WHERE relation IN ('longs', 'floats')"
        assert rows(db, told) == [("floats", 1), ("longs", 1)]
        put(inbox, "2", ("max", 1, Decimal(1), 1.0, 1))
        db.run()
        found = db.sql("SELECT name, state, problem FROM laminar_catalog.views").fetchall()
        problems = {name: problem for name, state, problem in found if state == "failed"}
        assert problems.keys() == {"longs", "decimals"}
        for name, value in (("longs", MOST + 1), ("decimals", 10**38)):
            assert f"of view {name} is {value} for the key" in problems[name]
            assert "'max'" in problems[name]
        assert rows(db, "SELECT * FROM beside") == [(4,)]


def test_keys_whose_hashes_collide_stay_apart(db, monkeypatch):
    kept = grouping.hash_of
    monkeypatch.setattr(grouping, "hash_of", lambda keys: f"CAST(pmod({kept(keys)}, 2) AS BIGINT)")
    db.sql("CREATE SOURCE t (k INT, v INT) WITH (connector = 'push')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n, MAX(v) AS most FROM t GROUP BY k")
    for value in (1, 2):
        db.insert("t", [{"k": k, "v": value} for k in range(20 * value)])
        db.run()
    assert rows(db, "SELECT * FROM v") == sorted([(k, 2 if k < 20 else 1, 2) for k in range(40)], key=repr)


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_a_damaged_run_file_is_named_and_what_is_committed_stays_readable(db, tmp_path, damage):
    db.sql("CREATE SOURCE t (k INT) WITH (connector = 'push')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    db.sql("CREATE MATERIALIZED VIEW beside AS SELECT COUNT(*) AS n FROM t")
    db.insert("t", [{"k": 1}])
    db.run()
    owner = db._engine.view("v").id
    (run,) = (tmp_path / "home" / "state" / str(owner)).rglob("*.run")
    whole = run.read_bytes()
    if damage == "missing":
        run.unlink()
    else:
        middle = len(whole) // 2
        run.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    db.insert("t", [{"k": 1}, {"k": 2}])
    db.run()
    found = {
        name: (state, problem)
        for name, state, problem in db.sql("SELECT name, state, problem FROM laminar_catalog.views").fetchall()
    }
    assert found["beside"] == ("live", None)
    assert found["v"][0] == "failed"
    assert run.name in found["v"][1]
    assert rows(db, "SELECT * FROM beside") == [(3,)]
    assert [tuple(row[4:]) for row in db.changes("v").fetchall()] == [(1, 1)]
    run.write_bytes(whole)
    db.sql("ALTER MATERIALIZED VIEW v RESUME")
    db.run()
    assert rows(db, "SELECT * FROM v") == [(1, 2), (2, 1)]
