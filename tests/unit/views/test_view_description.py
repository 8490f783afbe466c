"""CREATE MATERIALIZED VIEW answers with what the view is, in the words of its query."""

from __future__ import annotations

import pytest

import laminae as lm

COLUMNS = "id BIGINT, a INT, t STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "SELECT t, COUNT(*) AS n, SUM(a) + 1 AS q FROM s WHERE a > 1 GROUP BY t HAVING COUNT(*) > 2",
            "(t, n, q) from s; grouped by t: COUNT(*), SUM(a); one row for each t; emits CHANGES",
        ),
        ("SELECT id, a * 2 AS b FROM s WHERE a > 0", "(id, b) from s; rows without a key; emits CHANGES"),
        ("SELECT DISTINCT t FROM s", "(t) from s; each row once; one row for each t; emits CHANGES"),
        ("SELECT COUNT(DISTINCT t) AS n FROM s", "all rows as one group: COUNT(DISTINCT t)"),
        ("SELECT id FROM s UNION ALL SELECT a FROM s", "(id) from s; 2 inputs together; rows without a key"),
        (
            "SELECT window.start AS w, COUNT(*) AS n FROM s GROUP BY window(ts, '1 minute') EMIT ON WINDOW CLOSE",
            "(w, n) from s; grouped by window(ts, '1 minute'): COUNT(*)",
        ),
        (
            "SELECT MAX(n) AS m FROM (SELECT t, COUNT(*) AS n FROM s GROUP BY t)",
            "(m) from s; grouped by t: COUNT(*); all rows as one group: MAX(n)",
        ),
    ],
)
def test_a_new_view_is_described(tmp_path, query: str, said: str) -> None:
    with lm.connect(tmp_path / "home") as db:
        db.sql(f"CREATE SOURCE s ({COLUMNS})")
        detail = str(db.sql(f"CREATE MATERIALIZED VIEW v AS {query}").fetchall()[0][3])
        assert said.casefold() in detail.casefold()
        assert not any(inner in detail for inner in ("k0", "o0", "Linear", "GroupBy"))
        replaced = str(db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}").fetchall()[0][3])
        assert replaced.startswith(detail)
