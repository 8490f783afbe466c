"""What changes from before a column was added have in it."""

from __future__ import annotations

import pytest

import laminae as lm
from laminae.engine.evolution.added_columns import added_defaults

VIEWS = {
    "everything": "SELECT * FROM s",
    "above": "SELECT * FROM everything WHERE a > 1",
    "named": "SELECT a FROM s",
    "both": "SELECT a FROM everything",
}


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as found:
        found.sql("CREATE SOURCE s (a INT, d INT DEFAULT 1)")
        for name, query in VIEWS.items():
            found.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        found.sql("ALTER SOURCE s ADD COLUMN b INT DEFAULT 7")
        found.sql("ALTER SOURCE s ADD COLUMN c INT")
        yield found


def defaults(db, name):
    catalog = db._catalog
    relation = catalog.source(name) or catalog.view(name)
    found = added_defaults(relation, catalog.sources(), catalog.views())
    return {column: value.as_py() for column, value in found.items()}


def test_a_source_has_the_defaults_of_its_columns(db):
    assert defaults(db, "s") == {"d": 1, "b": 7}


@pytest.mark.parametrize("view", ["everything", "above"])
def test_what_a_star_has_gained_has_the_default_through_any_number_of_views(db, view):
    assert defaults(db, view) == {"b": 7}
    db.sql("ALTER SOURCE s RENAME COLUMN b TO e")
    assert defaults(db, view) == {"e": 7}


@pytest.mark.parametrize("view", ["named", "both"])
def test_a_view_that_names_its_columns_gains_none(db, view):
    assert defaults(db, view) == {}


def test_a_view_that_was_written_later_has_the_column_in_all_its_changes(db):
    db.sql("CREATE MATERIALIZED VIEW later AS SELECT * FROM s")
    assert defaults(db, "later") == {}
