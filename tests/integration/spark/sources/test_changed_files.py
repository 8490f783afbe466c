"""Files that are not as they were when they were first read: never other rows without a word."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import SourceFileChanged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    return place


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database


def detail(db: lm.Database) -> str:
    (row,) = [row for row in db.status().to_pylist() if row["kind"] == "source"]
    return row["detail"]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_rewritten_or_grown_file_is_an_error_on_reading_and_shown_in_status(db, inbox, kind):
    header, old, new = ("", '{"a": 1}\n', '{"a": 2}\n') if kind == "json" else ("a\n", "1\n", "2\n")
    db.sql(f"CREATE SOURCE s (a INT) WITH (connector = 'files', format = '{kind}', path = '{inbox}')")
    file = inbox / "first"
    file.write_text(header + old)
    db.run()
    assert db.sql("SELECT a FROM s").fetchall() == [(1,)]
    os.utime(file)
    assert db.sql("SELECT a FROM s").fetchall() == [(1,)]
    # The same size, other values.
    file.write_text(header + new)
    with pytest.raises(SourceFileChanged, match="the same size but different content"):
        db.sql("SELECT a FROM s").fetchall()
    # More records: those of other files are still read, and status names what is not.
    file.write_text(header + old + new)
    (inbox / "second").write_text(header + new)
    db.run()
    assert "appended content is not read" in detail(db)
    assert f"truncate -s {len(header + old)} {file}" in detail(db)
    with pytest.raises(SourceFileChanged, match="appended content is not read"):
        db.sql("SELECT a FROM s").fetchall()
    os.truncate(file, len(header + old))
    (inbox / "third").write_text(header + new)
    db.run()
    assert db.sql("SELECT a FROM s ORDER BY a").fetchall() == [(1,), (2,), (2,)]
    assert "last epoch" in detail(db)


def test_compressed_csv_files_and_sub_directories_are_refused_by_name(db, inbox):
    db.sql(f"CREATE SOURCE s (a INT) WITH (connector = 'files', format = 'csv', path = '{inbox}')")
    (inbox / "a.CSV").write_text("a\n1\n")
    (inbox / "b.csv.gz").write_bytes(b"\x1f\x8b\x08")
    (inbox / "sub").mkdir()
    db.run()
    assert db.sql("SELECT a FROM s").fetchall() == [(1,)]
    ((partition, reason),) = db.sql("SELECT partition, reason FROM laminar_catalog.dead_letters").fetchall()
    assert partition == str(inbox / "b.csv.gz")
    assert "compressed" in reason
    assert "decompress it" in reason
    assert "SUBDIRECTORY_NOT_READ" in detail(db)
