"""UNION of columns of different types: the types come from the whole query, whichever side has rows in an epoch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

LEFT = """id INT, i INT, d INT, t DATE, s STRING, x FLOAT, st STRUCT<a: INT, b: STRING>, l ARRAY<INT>, n INT"""
RIGHT = """id INT, i BIGINT, d DECIMAL(20, 4), t TIMESTAMP, s INT, x DOUBLE, st STRUCT<a: BIGINT, b: STRING>,
           l ARRAY<BIGINT>, n INT"""
BOTH = "SELECT id, i, d, t, s, x, st, l, NULL AS n FROM l UNION ALL SELECT id, i, d, t, s, x, st, l, n FROM r"
QUERIES = {
    "appended": BOTH,
    "distinct_rows": BOTH.replace("UNION ALL", "UNION"),
    "grouped": "SELECT i, d, s, COUNT(*) AS c, MAX(t) AS t, SUM(x) AS x FROM (BOTH) GROUP BY i, d, s".replace(
        "BOTH", BOTH
    ),
    "of_structs": "SELECT st, l, COUNT(*) AS c FROM (BOTH) GROUP BY st, l".replace("BOTH", BOTH),
    "of_groups": "SELECT i, COUNT(*) AS c FROM l GROUP BY i UNION ALL SELECT d, COUNT(*) FROM r GROUP BY d",
    "over_a_view": "SELECT i, s FROM l UNION SELECT total, c FROM totals",
}
BELOW = "SELECT s, SUM(i) AS total, COUNT(*) AS c FROM r GROUP BY s"


def left(number: int) -> dict[str, object]:
    nested = {"st": {"a": number, "b": "x"}, "l": [number, None]}
    return {"id": number, "i": number, "d": number, "t": "2024-01-02", "s": str(number), "x": 0.5, **nested, "n": 1}


def right(number: int) -> dict[str, object]:
    nested = {"st": {"a": number, "b": "x"}, "l": [number, None]}
    time = "2024-01-02T00:00:00Z"
    return {"id": number, "i": number, "d": number, "t": time, "s": number, "x": 0.5, **nested, "n": number}


def rows(table: pa.Table) -> list[tuple]:
    return sorted(rows_in_order(table), key=repr)


def net(changes: pa.Table, names: list[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row, weight in zip(rows_in_order(changes.select(names)), changes.column("_weight").to_pylist(), strict=True):
        found[repr(row)] += weight
    return +found


def rows_in_order(table: pa.Table) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_a_union_has_the_types_of_the_whole_query_whichever_side_has_rows(db):
    db.sql(f"CREATE SOURCE l ({LEFT}) WITH (connector = 'push'); CREATE SOURCE r ({RIGHT}) WITH (connector = 'push')")
    db.sql(f"CREATE MATERIALIZED VIEW totals AS {BELOW}")
    for name, query in QUERIES.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.run()
    for side in "rlr":
        made = right if side == "r" else left
        db.insert(side, [made(1), made(2)])
        db.run()
        states = db.sql("SELECT name, state, problem FROM laminar_catalog.views").fetchall()
        assert [found for found in states if found[1] != "live"] == []
    for name, query in QUERIES.items():
        batch = db.sql(query.replace("totals", f"({BELOW})")).arrow()
        shown = db.sql(f"SELECT * FROM {name}").arrow()  # noqa: S608  # a name of this file
        changed = db.changes(name).arrow()
        assert [field.type for field in shown.schema] == [field.type for field in batch.schema], name
        assert rows(shown) == rows(batch), name
        assert net(changed, batch.column_names) == Counter(map(repr, rows(batch))), name
