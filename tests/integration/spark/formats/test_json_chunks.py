"""Large files of JSON lines: read many lines at once, with the rows and the dead letters of the careful way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from laminae.codec.json_lines import line_reader
from laminae.spark.formats.json import arrow_lines as json_chunks
from tests.integration.spark.formats.test_decode_json import READ, WIDE
from tests.support.build import schema
from tests.unit.codec.test_json_lines import ODD, PLAIN, SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm
    from laminae.spark.formats.frame_rows import WatchedRows
    from tests.support.decoding import Decode

COLUMNS = "id BIGINT NOT NULL, name STRING, x DOUBLE, status STRING DEFAULT 'new'"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_chunks, "LEAST_BYTES", 1)


@pytest.fixture
def chunked(monkeypatch: pytest.MonkeyPatch) -> list[WatchedRows | None]:
    """The reads that were made in chunks, as they are made."""
    made: list[WatchedRows | None] = []
    usual = json_chunks.chunked_rows

    def told(*given: object) -> WatchedRows | None:
        made.append(usual(*given))  # type: ignore[arg-type]  # the same
        return made[-1]

    monkeypatch.setattr("laminae.spark.formats.json.format.chunked_rows", told)
    return made


def lines(count: int, start: int = 0) -> list[str]:
    numbers = range(start, start + count)
    return [json.dumps({"id": n, "name": f"n {n}", "x": n / 4, "status": "old"}) for n in numbers]


def source(db: lm.Database, inbox: Path) -> None:
    db.sql(f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'files', format = 'json', path = '{inbox}')")


def test_what_is_read_at_once_is_what_the_careful_way_reads(decoded: Decode) -> None:
    """Every text of both suites, those that one of them finds odd included."""
    plain = schema(*(field for field in WIDE if line_reader(schema(field)) is not None))
    given = [PLAIN, *(text for text, _ in READ.values()), *ODD.values()]
    for columns in (plain, SCHEMA):
        reader = line_reader(columns)
        assert reader is not None
        found = [reader.read(text) for text in given]
        careful = decoded(given, columns)
        pairs = [
            (rows.to_pylist(), [row]) for rows, (row, _, _) in zip(found, careful, strict=True) if rows is not None
        ]
        assert pairs
        assert all(ours == theirs for ours, theirs in pairs)


def test_files_are_read_in_chunks_and_feed_a_sink_and_a_view(
    db: lm.Database, inbox: Path, tmp_path: Path, chunked: list[WatchedRows | None]
) -> None:
    source(db, inbox)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id % 2 AS odd, COUNT(*) AS n, SUM(x) AS x FROM s GROUP BY id % 2")
    out = tmp_path / "out"
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', format = 'parquet', path = '{out}')")
    (inbox / "a.json").write_text("\n".join(lines(500)))
    (inbox / "b.json").write_text("\n".join(lines(500, 500)) + "\n")
    db.run()
    assert len(chunked) == 1
    assert chunked[0] is not None
    assert db.sql("SELECT count(*), count(DISTINCT id), sum(x) FROM s").fetchall() == [(1000, 1000, 124_875.0)]
    assert db.sql("SELECT * FROM v ORDER BY odd").fetchall() == [(0, 500, 62_375.0), (1, 500, 62_500.0)]
    assert sum(epoch["rows"] for epoch in db.sql("SELECT rows FROM laminar_catalog.epochs").arrow().to_pylist()) == 1000
    assert sum(1 for _ in out.glob("*.parquet")) >= 1


def test_rows_that_are_read_twice_are_counted_once(
    db: lm.Database, inbox: Path, chunked: list[WatchedRows | None]
) -> None:
    source(db, inbox)
    (inbox / "a.json").write_text("\n".join(lines(500)))
    db.run()
    (rows,) = chunked
    assert rows is not None
    assert [rows.frame().count(), rows.frame().count(), rows.count()] == [500, 500, 500]


def test_one_odd_record_sends_the_whole_epoch_the_careful_way(
    db: lm.Database, inbox: Path, chunked: list[WatchedRows | None]
) -> None:
    source(db, inbox)
    (inbox / "a.json").write_text("\n".join([*lines(100), '{"id":100}', '{"id":"x"}']))
    db.run()
    assert db.sql("SELECT count(*), max(status) FROM s").fetchall() == [(101, "old")]
    assert db.sql("SELECT status FROM s WHERE id = 100").fetchall() == [("new",)]
    assert db.sql("SELECT count(*) FROM laminar_catalog.dead_letters").fetchall() == [(1,)]
    assert len(chunked) == 1
