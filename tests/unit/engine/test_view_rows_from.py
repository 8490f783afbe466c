"""Where the rows of a view are read from: never from the log of a source."""

from __future__ import annotations

import pytest

import laminae as lm
from laminae.engine.views.row_source import RowsFrom, rows_from

STATE, INPUTS, CHANGELOG = RowsFrom.STATE, RowsFrom.INPUTS, RowsFrom.CHANGELOG


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as found:
        found.sql("CREATE SOURCE s (a INT, b INT)")
        found.sql("CREATE SOURCE k (a INT, b INT, PRIMARY KEY (a)) WITH (changelog = 'upsert')")
        found.sql("CREATE MATERIALIZED VIEW below AS SELECT a, b FROM s")
        yield found


@pytest.mark.parametrize(
    ("query", "whole", "later"),
    [
        ("SELECT a FROM s", CHANGELOG, CHANGELOG),
        ("SELECT a FROM s WHERE b > 1 UNION ALL SELECT a FROM k", CHANGELOG, CHANGELOG),
        ("SELECT a FROM k", INPUTS, CHANGELOG),
        ("SELECT a FROM below UNION ALL SELECT b AS a FROM k", INPUTS, CHANGELOG),
        ("SELECT a FROM k EMIT EVERY '1' HOUR", CHANGELOG, CHANGELOG),
        ("SELECT DISTINCT a FROM s", STATE, STATE),
        ("SELECT a, COUNT(*) AS n FROM s GROUP BY a HAVING COUNT(*) > 1", STATE, STATE),
        ("SELECT a, COUNT(*) AS n FROM s GROUP BY a UNION ALL SELECT a, 0L AS n FROM s", CHANGELOG, CHANGELOG),
        ("SELECT a, COUNT(*) AS n FROM s GROUP BY a UNION ALL SELECT a, 0L AS n FROM k", INPUTS, CHANGELOG),
        ("SELECT a, COUNT(*) AS n FROM s GROUP BY a EMIT FINAL", STATE, STATE),
    ],
)
def test_rows_come_from_what_keeps_them(db, query, whole, later):
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    db.sql(f"CREATE MATERIALIZED VIEW w WITH (backfill = 'false') AS {query}")
    catalog = db._catalog
    found = [rows_from(catalog.view(name), catalog.sources(), catalog.views()) for name in ("v", "w")]
    assert found == [whole, later]
