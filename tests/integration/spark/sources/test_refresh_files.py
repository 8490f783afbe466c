"""REFRESH SCHEMA of files sources: the newest files say what the schema lacks; only JSON needs Spark for it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.errors import EvolutionRejected, InferenceFailed
from tests.support.files import create_source, numbered


def opened(tmp_path, inbox, columns, spark=None, **options):
    db = lm.connect(str(tmp_path / "home"), spark=spark)
    create_source(db, inbox, columns, **options)
    return db


def refreshed(db):
    return db.sql("ALTER SOURCE s REFRESH SCHEMA").fetchall()[0][0]


def types(db):
    return {field.name: str(field.type) for field in db.schema("s")}


class NoSpark:
    """A session that must not be used."""

    def __getattr__(self, name):
        raise AssertionError(f"Spark was asked for {name}")

    readStream = sql = property(lambda self: self.used)  # noqa: N815  # the names of a session


def test_parquet_footers_add_widen_and_rename_by_field_id(tmp_path, inbox):
    with opened(tmp_path, inbox, "id INT, amount INT", NoSpark(), format="parquet") as db:
        with pytest.raises(InferenceFailed, match="it has no files"):
            refreshed(db)
        (inbox / "a.parquet").write_bytes(b"no")
        with pytest.raises(InferenceFailed, match="cannot be read as Parquet"):
            refreshed(db)
        pq.write_table(numbered(pa.table({"id": [1], "amount": [1]}), [1, 2]), inbox / "b.parquet")
        assert refreshed(db) == "applied"
        assert types(db) == {"id": "int64", "amount": "int64"}
        pq.write_table(numbered(pa.table({"id": [1], "cents": [1], "city": ["x"]}), [1, 2, 3]), inbox / "c.parquet")
        assert refreshed(db) == "applied"
        assert types(db) == {"id": "int64", "cents": "int64", "city": "string"}
        told = db.sql("SELECT version, change_type, column_name, trigger FROM laminar_catalog.schema_history "
                      "WHERE version > 2 ORDER BY column_name").fetchall()  # fmt: skip
        assert told == [(3, "ColumnRenamed", "cents", "ManualRefresh"), (3, "ColumnAdded", "city", "ManualRefresh")]
        assert refreshed(db) == "unchanged"


def test_csv_headers_and_first_records_are_enough(tmp_path, inbox):
    with opened(tmp_path, inbox, "id INT, amount INT", NoSpark(), format="csv", csv_delimiter=";") as db:
        (inbox / "a.csv").write_bytes(b"")
        (inbox / "b.csv").write_bytes(b"id;id\n")
        with pytest.raises(InferenceFailed, match="has id twice"):
            refreshed(db)
        (inbox / "c.csv").write_bytes(b'id;amount;city;n;empty\n1;3000000000;"a;\nb";7;\n2;2\n3;\xff;;8;\n')
        assert refreshed(db) == "applied"
        assert types(db) == {"id": "int32", "amount": "int64", "city": "string", "n": "int64"}
        db.sql("ALTER SOURCE s RENAME COLUMN city TO town")
        assert refreshed(db) == "unchanged"
        assert db.sql("EXPLAIN ALTER SOURCE s REFRESH SCHEMA").fetchall()


def test_json_lines_are_inferred_and_the_mode_decides(tmp_path, inbox, spark):
    with opened(tmp_path, inbox, "id INT", spark, format="json", compatibility="FULL") as db:
        (inbox / "a.json").write_text('{"id": 1, "city": "Rome"}\n')
        assert refreshed(db) == "applied"
        (inbox / "b.json").write_text('{"id": 3000000000, "city": "Rome"}\n')
        with pytest.raises(EvolutionRejected, match="widen type"):
            refreshed(db)
        assert types(db) == {"id": "int32", "city": "string"}
