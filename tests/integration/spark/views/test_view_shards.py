"""Groups stay on the shard of their keys, whatever Spark's optimizer makes of the keys, and NULL structs are kept."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import laminae as lm

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KEYS = {
    "a constant beside a column": "SELECT 1.10 AS k, x, COUNT(*) AS n, MAX(y) AS m FROM s GROUP BY 1.10, x",
    "a constant without slots": "SELECT 'k' AS k, x, COUNT(*) AS n FROM s GROUP BY 'k', x",
    "a key that folds to a constant": "SELECT IF(TRUE, 'a', y) AS k, x, MIN(y) AS m FROM s "
    "GROUP BY IF(TRUE, 'a', y), x",
    "constants alone": "SELECT 1.1 AS k, 'a' AS l, COUNT(DISTINCT x) AS n FROM s GROUP BY 1.1, 'a'",
    "one column as two keys": "SELECT a, b, MAX(y) AS m FROM (SELECT x AS a, x AS b, y FROM s) AS t GROUP BY a, b",
    "DISTINCT of a constant": "SELECT DISTINCT 'a' AS k, x, x AS again FROM s",
    "a default that no record has": "SELECT d, x, MAX(y) AS m, SUM(f) AS f FROM s GROUP BY d, x",
    "groups of groups": "SELECT k, n, COUNT(*) AS c FROM (SELECT 2 AS k, x, COUNT(*) AS n FROM s GROUP BY x) AS t "
    "GROUP BY k, n",
    "a struct of required fields": "SELECT IF(x > 3, named_struct('x', 1), NULL) AS k, COUNT(*) AS n FROM s "
    "GROUP BY IF(x > 3, named_struct('x', 1), NULL)",
    "the greatest of such structs": "SELECT y, MAX(IF(x > 3, named_struct('x', x), NULL)) AS m FROM s GROUP BY y",
    "arrays of required elements": "SELECT DISTINCT IF(x > 3, array(1, 2), NULL) AS k FROM s",
    "a linear view of such structs": "SELECT IF(x > 3, named_struct('x', 1, 'l', array(1)), NULL) AS k FROM s",
}


def test_groups_are_exact_whatever_the_optimizer_makes_of_their_keys(spark: SparkSession, tmp_path: Path) -> None:
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql("CREATE SOURCE s (x INT, y STRING, f DOUBLE, d STRING DEFAULT 'd') WITH (connector = 'push')")
        views = {f"v{place}": query for place, query in enumerate(KEYS.values())}
        for name, query in views.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for epoch in range(3):
            db.insert("s", [{"x": n % (5 + epoch), "y": f"{n * (epoch + 1) % 7}", "f": n / 2} for n in range(20)])
            db.run()
        problems = dict(db.sql("SELECT name, problem FROM laminar_catalog.views WHERE problem IS NOT NULL").fetchall())
        assert problems == {}
        for what, (name, query) in zip(KEYS, views.items(), strict=True):
            assert _rows(db, f"SELECT * FROM {name}") == _rows(db, query), what  # noqa: S608
            total: Counter[str] = Counter()
            for _, _, weight, _, *row in db.changes(name).fetchall():
                total[repr(row)] += weight
            assert +total == total == _rows(db, query), what


def _rows(db: lm.Database, query: str) -> Counter[str]:
    return Counter(repr(list(row)) for row in db.sql(query).fetchall())
