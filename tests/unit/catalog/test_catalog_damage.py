"""A catalog file that is whole for SQLite and damaged for us."""

import sqlite3

import pytest

import laminae as lm
from laminae.errors import CatalogCorrupt

DAMAGE = [
    "UPDATE sources SET options = '{'",
    "UPDATE sources SET options = '[]x'",
    "UPDATE sources SET created_at = 'x'",
    "UPDATE sources SET primary_key = 'zz'",
    "DELETE FROM counters",
    "DELETE FROM schema_history; DELETE FROM schema_versions",
    "UPDATE schema_versions SET arrow_schema = x'00'",
    "PRAGMA foreign_keys = OFF; DROP TABLE sources",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_rows_are_named_as_damage(tmp_path, damage):
    home = str(tmp_path / "home")
    with lm.connect(home) as db:
        db.sql("CREATE SOURCE s (a INT, PRIMARY KEY (a))")
    connection = sqlite3.connect(tmp_path / "home" / "catalog.db")
    connection.executescript(damage)
    connection.close()
    with lm.connect(home) as db, pytest.raises(CatalogCorrupt):
        db.sql("DESCRIBE SOURCE s; ALTER SOURCE s ADD COLUMN b INT")
