"""Which relations nobody can check for deletes of rows that never came."""

from __future__ import annotations

import laminae as lm
from laminae.engine.catalog_query.introspection import NOT_COUNTED


def test_relations_that_pass_on_deletes_of_rows_never_seen_are_named(tmp_path):
    with lm.connect(str(tmp_path / "home")) as db:
        db.sql(
            "CREATE SOURCE taken_back (k INT, w INT) "
            "WITH (connector = 'push', changelog = 'retract', weight_field = 'w');"
            "CREATE SOURCE added (k INT) WITH (connector = 'push');"
            "CREATE MATERIALIZED VIEW plain AS SELECT k FROM taken_back WHERE k > 0;"
            "CREATE MATERIALIZED VIEW above AS SELECT k + 1 AS k FROM plain UNION ALL SELECT k FROM added;"
            "CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM plain;"
            "CREATE MATERIALIZED VIEW distinct_rows AS SELECT DISTINCT k FROM plain;"
            "CREATE MATERIALIZED VIEW others AS SELECT k FROM added"
        )
        shown = db.sql("SELECT relation, epoch, negative_keys, note FROM laminar_catalog.anomalies").fetchall()
        assert shown == [(name, None, None, NOT_COUNTED) for name in ("above", "plain", "taken_back")]
