"""VARIANT columns of a source: linear views and values inside them work; as keys they are refused by name."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.engine.engine import Engine
from laminae.errors import QueryFailed

COLUMNS = "id INT, v VARIANT, st STRUCT<x: VARIANT>, ar ARRAY<VARIANT>, de ARRAY<STRUCT<y: MAP<STRING, VARIANT>>>"
ROW = {"v": {"a": [1, "x"]}, "st": {"x": 1.5}, "ar": [None, True, {"b": 2}], "de": [{"y": {"k": 3}}]}
KEPT = ("v", "st", "ar", "de")
SHAPES = {
    "grouped": "SELECT {0}, COUNT(*) AS n FROM {1} GROUP BY {0}",
    "once": "SELECT DISTINCT {0} FROM {1}",
    "rows_once": "SELECT DISTINCT * FROM {1}",
    "union": "SELECT {0} FROM {1} UNION SELECT {0} FROM {1}",
    "least": "SELECT id, MIN({0}) AS x FROM {1} GROUP BY id",
    "greatest": "SELECT MAX({0}) AS x FROM {1}",
    "counted": "SELECT COUNT(DISTINCT {0}) AS n FROM {1}",
    "hidden": "SELECT struct({0}) AS x, COUNT(*) AS n FROM {1} GROUP BY 1",
}
LINEAR = "SELECT id, v, st, ar, de, variant_get(v, '$.a[0]', 'int') AS one, to_json(st) AS text FROM {}"
REMEDY = "SELECT to_json({0}) AS t, COUNT(*) AS n FROM {1} GROUP BY to_json({0})"
SHOWN = "SELECT id, one, text, to_json(v), to_json(ar), to_json(de) FROM {} ORDER BY id"


def create(db, tmp_path, kind: str) -> None:
    options = "connector = 'push'"
    if kind != "push":
        (tmp_path / kind).mkdir()
        options = f"connector = 'files', format = '{kind}', path = '{tmp_path / kind}'"
    db.sql(f"CREATE SOURCE {kind}_s ({COLUMNS}) WITH ({options})")


def put(db, tmp_path, kind: str, number: int) -> None:
    row = {"id": number, **ROW}
    if kind == "push":
        db.insert("push_s", [row])
    else:
        (tmp_path / kind / f"{number}.json").write_text(json.dumps(row))


@pytest.mark.parametrize("kind", ["push", "json"])
def test_a_view_that_keeps_variants_as_keys_is_refused_and_linear_views_of_them_work(db, tmp_path, kind):
    create(db, tmp_path, kind)
    source = f"{kind}_s"
    db.sql(f"CREATE MATERIALIZED VIEW linear AS {LINEAR.format(source)}")
    db.sql(f"CREATE MATERIALIZED VIEW by_text AS {REMEDY.format('v', source)}")
    put(db, tmp_path, kind, 1)
    db.run()
    for name, shape in SHAPES.items():
        for column in KEPT:
            with pytest.raises(QueryFailed, match=r"(VARIANT|MAP)[^$]*to_json"):
                db.sql(f"CREATE MATERIALIZED VIEW {name} AS {shape.format(column, source)}")
    put(db, tmp_path, kind, 2)
    db.run()
    expected = [(n, 1, '{"x":1.5}', '{"a":[1,"x"]}', '[null,true,{"b":2}]', '[{"y":{"k":3}}]') for n in (1, 2)]
    assert db.sql(SHOWN.format("linear")).fetchall() == expected
    assert db.sql("SELECT * FROM by_text").fetchall() == [('{"a":[1,"x"]}', 2)]
    assert db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall() == []


def test_without_spark_at_create_such_a_view_fails_alone_and_its_source_goes_on(db, tmp_path, monkeypatch):
    def unjudged(engine, statement, create=Engine._create_view):
        engine._judge_view = None
        return create(engine, statement)

    monkeypatch.setattr(Engine, "_create_view", unjudged)
    create(db, tmp_path, "push")
    db.sql(f"CREATE MATERIALIZED VIEW linear AS {LINEAR.format('push_s')}")
    for name, shape in SHAPES.items():
        for column in KEPT:
            db.sql(f"CREATE MATERIALIZED VIEW {name}_{column} AS {shape.format(column, 'push_s')}")
    for number in (1, 2):
        put(db, tmp_path, "push", number)
        db.run()
    assert len(db.sql(SHOWN.format("linear")).fetchall()) == 2
    views = db.sql("SELECT name, state, problem FROM laminar_catalog.views WHERE name <> 'linear'").fetchall()
    assert {(state, "to_json" in str(problem)) for _, state, problem in views} == {("failed", True)}, views


def test_a_parquet_file_has_no_column_that_a_variant_could_be(db, tmp_path):
    """Its records are letters that say so, and the source goes on."""
    create(db, tmp_path, "parquet")
    db.sql(f"CREATE MATERIALIZED VIEW linear AS {LINEAR.format('parquet_s')}")
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": [b"x"]}), tmp_path / "parquet" / "1.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int32())}), tmp_path / "parquet" / "2.parquet")
    db.run()
    assert db.sql("SELECT id, v FROM linear").fetchall() == [(2, None)]
    (letter,) = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    assert "VARIANT" in letter[0]
