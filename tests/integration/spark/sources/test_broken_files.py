"""Files that Spark cannot open or read to their end: one dead letter each, and the stream goes on."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.engine import faults
from laminae.errors import LaminaeError

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm

LETTERS = "SELECT partition, value, reason FROM laminar_catalog.dead_letters"


def text(*numbers: int) -> bytes:
    return "".join(json.dumps({"id": number}) + "\n" for number in numbers).encode()


def source(db: lm.Database, inbox: Path, kind: str) -> None:
    db.sql(f"CREATE SOURCE s (id BIGINT) WITH (connector = 'files', format = '{kind}', path = '{inbox}')")


def ids(db: lm.Database) -> list[int]:
    return [row[0] for row in db.sql("SELECT id FROM s ORDER BY id").fetchall()]


@pytest.mark.parametrize(
    "content", [text(9), gzip.compress(text(*range(5000)))[:-20]], ids=["plain text", "a cut archive"]
)
def test_what_is_called_gz_and_is_none_is_a_dead_letter_and_can_be_mended(
    db: lm.Database, inbox: Path, content: bytes
) -> None:
    source(db, inbox, "json")
    (inbox / "a.json").write_bytes(text(1))
    (inbox / "b.json.gz").write_bytes(content)
    (inbox / "c.json.gz").write_bytes(gzip.compress(text(3)))
    db.run()
    assert ids(db) == [1, 3]
    ((partition, value, reason),) = db.sql(LETTERS).fetchall()
    assert (partition, value) == (str(inbox / "b.json.gz"), None)
    assert reason.startswith("it cannot be read: ")
    again = db.replay_dead_letters("s")
    assert (again.rows, again.refused) == (0, 1)
    (inbox / "b.json.gz").write_bytes(gzip.compress(text(2)))
    replayed = db.replay_dead_letters("s")
    assert (replayed.rows, replayed.refused) == (1, 0)
    assert ids(db) == [1, 2, 3]


def test_damaged_pages_of_a_parquet_file_are_a_dead_letter(db: lm.Database, inbox: Path, tmp_path: Path) -> None:
    source(db, inbox, "parquet")
    # Where nobody asks for a value, none is read.
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', format = 'json', path = '{tmp_path / 'out'}')")
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": pa.array(range(5000), pa.int64())}), inbox / f"{name}.parquet")
    damaged = bytearray((inbox / "b.parquet").read_bytes())
    damaged[4:4000] = b"\xff" * 3996
    (inbox / "b.parquet").write_bytes(damaged)
    db.run()
    assert db.sql("SELECT count(id), sum(id) FROM s").fetchall() == [(5000, 12_497_500)]
    ((partition, _, reason),) = db.sql(LETTERS).fetchall()
    assert partition == str(inbox / "b.parquet")
    assert reason.startswith("it cannot be read: ")


def test_a_name_that_is_not_utf8_is_a_dead_letter(db: lm.Database, inbox: Path) -> None:
    source(db, inbox, "json")
    with open(os.fsencode(inbox) + b"/\xff.json", "wb") as file:
        file.write(text(1))
    (inbox / "a.json").write_bytes(text(2))
    db.run()
    assert ids(db) == [2]
    ((partition, _, reason),) = db.sql(LETTERS).fetchall()
    assert partition.endswith(r"\xff.json")
    assert reason == "its name is not UTF-8 text"


def test_files_that_are_away_while_their_job_runs_are_no_dead_letters(db: lm.Database, inbox: Path) -> None:
    source(db, inbox, "parquet")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT SUM(id) AS total FROM s")
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), inbox / "a.parquet")
    away = inbox.with_name("away")
    faults.install("epoch planned", lambda: inbox.rename(away) if inbox.exists() else None)
    try:
        with pytest.raises(LaminaeError):
            db.run()
    finally:
        faults.clear()
        away.rename(inbox)
    db.run()
    assert db.sql("SELECT total FROM v").fetchall() == [(3,)]
    assert db.sql(LETTERS).fetchall() == []
