"""Views that cannot be computed beside one that can: CREATE refuses them, or they fail alone. No source ever stops."""

from __future__ import annotations

import pytest

import laminae as lm
from laminae.engine.engine import Engine
from laminae.errors import FunctionNotAllowed, InvalidName, QueryFailed, UnsupportedSql

COLUMNS = "k STRING, a INT, b BIGINT, c STRING, ts TIMESTAMP"
RESERVED = ("_op", "_timestamp", "_weight", "_epoch", "_hash", "_OP", "__laminae_report")
REFUSED = {
    "empty_struct": ("SELECT a, struct() AS x FROM s", "without fields"),
    "empty_struct_key": ("SELECT struct() AS x, COUNT(*) AS n FROM s GROUP BY struct()", "without fields"),
    "empty_array": ("SELECT a, array() AS x FROM s", "no type"),
    "empty_array_key": ("SELECT DISTINCT array() AS x FROM s", "no type"),
    "empty_map": ("SELECT a, map() AS x FROM s", "no type"),
    "months": ("SELECT make_ym_interval(a) AS x FROM s", "interval"),
    "months_key": ("SELECT make_ym_interval(a) AS x, COUNT(*) AS n FROM s GROUP BY 1", "interval"),
    "least_months": ("SELECT a, MIN(make_ym_interval(a)) AS x FROM s GROUP BY a", "interval"),
    "calendar": ("SELECT make_interval(a) AS x FROM s", "interval"),
    "map_key": ("SELECT map(a, c) AS x, COUNT(*) AS n FROM s GROUP BY 1", "MAP"),
    "map_rows": ("SELECT DISTINCT map(a, c) AS x FROM s", "MAP"),
    "least_map": ("SELECT a, MIN(map(b, c)) AS x FROM s GROUP BY a", "view least_map"),
    "distinct_maps": ("SELECT a, COUNT(DISTINCT map(b, c)) AS x FROM s GROUP BY a", "MAP"),
    "distinct_variants": ("SELECT a, COUNT(DISTINCT to_variant_object(struct(a))) AS x FROM s GROUP BY a", "VARIANT"),
    "variant_key": ("SELECT to_variant_object(struct(a)) AS x, COUNT(*) AS n FROM s GROUP BY 1", "VARIANT"),
    "text_sum": ("SELECT a, SUM(c) AS x FROM s GROUP BY a", "CAST"),
    "no_function": ("SELECT no_such_function(a) AS x FROM s", "The function no_such_function"),
    "wrong_types": ("SELECT a + struct(1) AS x FROM s", "view wrong_types"),
}
# Spark finds out only with rows, or nobody asked it: the view fails alone.
FAILING = {
    "raised": "SELECT a, raise_error('no') AS x FROM s",
    "raised_key": "SELECT raise_error('no') AS x, COUNT(*) AS n FROM s GROUP BY 1",
    "raised_above": "SELECT n, raise_error('no') AS x FROM (SELECT a, COUNT(*) AS n FROM s GROUP BY a)",
    **{name: REFUSED[name][0] for name in ("empty_struct", "months_key", "empty_array", "map_key", "wrong_types")},
}
LATE = ("empty_array", "map_key", "wrong_types")
EXACT = {
    "nested": """SELECT k, MIN(struct(b, c)) AS a, MAX(struct(b, c)) AS b, COUNT(DISTINCT struct(b)) AS c,
                        MIN(array(b, a)) AS d, MAX(array(c)) AS e, COUNT(DISTINCT array(a)) AS f FROM s GROUP BY k""",
    "others": """SELECT k, MIN(CAST(c AS BINARY)) AS a, COUNT(DISTINCT CAST(c AS BINARY)) AS b, MIN(b > 5) AS c,
                        MAX(b > 5) AS d, COUNT(DISTINCT b > 5) AS e, MIN(make_dt_interval(b)) AS f,
                        COUNT(DISTINCT make_dt_interval(b)) AS g, MIN(NULL) AS h, COUNT(DISTINCT NULL) AS i
                 FROM s GROUP BY k""",
}


def rows(db, text: str) -> list[tuple]:
    return sorted(db.sql(text).fetchall(), key=repr)


def put(db, *values: tuple[int, int]) -> None:
    db.insert("s", [{"k": "k", "a": a, "b": b, "c": str(a), "ts": f"2024-01-01T00:0{a}:00Z"} for a, b in values])
    db.run()


@pytest.mark.parametrize("name", RESERVED)
def test_a_view_without_spark_refuses_columns_with_the_names_of_changes(tmp_path, name):
    with lm.connect(str(tmp_path / "home")) as db:
        db.sql(f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'push')")
        for query in (f"SELECT a AS {name} FROM s", f"SELECT x.{name} AS y FROM (SELECT a AS {name} FROM s) x"):  # noqa: S608
            with pytest.raises(InvalidName, match=name):
                db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")


def test_session_windows_are_refused_by_name(tmp_path):
    with lm.connect(str(tmp_path / "home")) as db:
        db.sql(f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'push')")
        with pytest.raises(UnsupportedSql, match="session_window"):
            db.sql(
                "CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM s "
                "GROUP BY k, session_window(ts, '5 minutes')"
            )


def test_create_refuses_by_name_what_spark_or_the_state_cannot_keep(db):
    db.sql(f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'push')")
    for name, (query, reason) in REFUSED.items():
        with pytest.raises((QueryFailed, FunctionNotAllowed), match=reason):
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    assert rows(db, "SELECT name FROM laminar_catalog.views") == []


def test_a_view_that_cannot_be_computed_fails_alone_and_its_source_goes_on(db, monkeypatch):
    monkeypatch.setattr(Engine, "_create_view", _unjudged(Engine._create_view))
    db.sql(f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'push')")
    db.sql("CREATE MATERIALIZED VIEW healthy AS SELECT COUNT(*) AS n FROM s")
    for name, query in EXACT.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    # Live before there are rows, so that they meet them in an epoch of their source; the others are being filled.
    for name in FAILING.keys() - set(LATE):
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {FAILING[name]}")
    db.run()
    put(db, (1, 10), (2, 20))
    for name in LATE:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {FAILING[name]}")
    put(db, (3, 5), (1, 10), (1, 1))
    assert rows(db, "SELECT * FROM healthy") == [(5,)]
    for name, query in EXACT.items():
        assert rows(db, f"SELECT * FROM {name}") == rows(db, query), name  # noqa: S608  # names of this file
    states = {name: (state, problem) for name, state, problem in rows(db, STATES)}
    assert {name for name, (state, _) in states.items() if state == "live"} >= {"healthy", *EXACT}
    # A row that Spark cannot compute is a dead letter; what cannot be kept at all fails the view, with a code.
    refused = {name for name, (state, _) in states.items() if state == "failed"}
    assert refused >= FAILING.keys() & REFUSED.keys(), states
    assert all(problem.startswith("[") for state, problem in states.values() if state == "failed"), states


STATES = "SELECT name, state, problem FROM laminar_catalog.views"


def _unjudged(create):
    """CREATE as it is where no session of Spark is at hand."""

    def planned(engine, statement):
        engine._judge_view = None
        return create(engine, statement)

    return planned
