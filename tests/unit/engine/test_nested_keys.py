"""A field widened inside a struct or array: refused where a view groups by the whole, followed elsewhere."""

from __future__ import annotations

import pytest

import laminae as lm
from laminae.errors import DependentsExist

COLUMNS = "k INT, st STRUCT<x: INT, y: STRING>, other STRUCT<x: INT>"
REFUSED = {
    "key": "SELECT st, COUNT(*) AS n FROM s GROUP BY st",
    "part_of_a_key": "SELECT struct(st, k) AS g, COUNT(*) AS n FROM s GROUP BY struct(st, k)",
    "distinct_rows": "SELECT DISTINCT st FROM s",
    "union_of_rows": "SELECT st FROM s UNION SELECT st FROM s WHERE k > 1",
    "inside": "SELECT g, COUNT(*) AS n FROM (SELECT st AS g FROM s) GROUP BY g",
    "above_a_view": "SELECT st, COUNT(*) AS n FROM whole GROUP BY st",
    "all_columns": "SELECT DISTINCT * FROM s",
}
FOLLOWED = {
    "field": "SELECT st.x, COUNT(*) AS n FROM s GROUP BY st.x",
    "value": "SELECT k, MIN(st) AS lo, COUNT(st) AS n FROM s GROUP BY k",
    "another": "SELECT other, SUM(st.x) AS n FROM s GROUP BY other",
    "linear": "SELECT k, st FROM s",
}


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as database:
        database.sql(f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'push')")
        database.sql("CREATE MATERIALIZED VIEW whole AS SELECT k, st FROM s")
        yield database


@pytest.mark.parametrize("name", REFUSED)
def test_a_field_widened_inside_a_key_is_refused_with_the_name_of_the_view(db, name):
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {REFUSED[name]}")
    with pytest.raises(DependentsExist, match=name):
        db.sql("ALTER SOURCE s ALTER COLUMN st.x TYPE BIGINT")
    assert db.version("s") == 1


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_field_widened_beside_the_keys_is_followed(db, name):
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {FOLLOWED[name]}")
    db.sql("ALTER SOURCE s ALTER COLUMN st.x TYPE BIGINT")
    assert db.version("s") == 2


def test_the_name_that_a_view_was_written_with_is_known_after_a_rename(db):
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT st, COUNT(*) AS n FROM s GROUP BY st")
    db.sql("ALTER SOURCE s RENAME COLUMN st TO place")
    with pytest.raises(DependentsExist, match="v"):
        db.sql("ALTER SOURCE s ALTER COLUMN place.x TYPE BIGINT")


def test_a_field_that_is_added_to_a_key_is_followed(db):
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT st, COUNT(*) AS n FROM s GROUP BY st")
    db.sql("ALTER SOURCE s ADD COLUMN st.z INT")
    assert db.version("s") == 2
