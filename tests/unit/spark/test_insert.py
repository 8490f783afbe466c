"""`insert` says which rows will be dead letters, or refuses them, before anything is stored. It starts no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.errors import SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(str(tmp_path / "home")) as database:
        database.sql("CREATE SOURCE orders (id BIGINT NOT NULL, n INT, city STRING)")
        yield database


def stored(tmp_path: Path) -> list[bytes]:
    files = sorted((tmp_path / "home").rglob("0*.parquet"))
    return [value for file in files for value in pq.read_table(file)["value"].to_pylist()]


def test_rows_that_will_be_dead_letters_are_named_and_stored(db: lm.Database, tmp_path: Path) -> None:
    inserted = db.insert("orders", [{"id": 1, "n": 1}, {"id": 2, "n": 1.5}, {"n": 3}])
    assert inserted == 3
    assert [(refused.row, refused.column) for refused in inserted.refused] == [(1, "n"), (2, "id")]
    assert repr(inserted) == (
        "3 rows, 2 of them will be dead letters, the first is row 1: n: 1.5 is not a value of type INT"
    )
    assert len(stored(tmp_path)) == 3
    good = db.insert("orders", [{"id": 1}])
    assert (good, repr(good), good.refused) == (1, "1", ())


def test_a_strict_insert_refuses_all_rows_for_one_that_does_not_fit(db: lm.Database, tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match=r"orders\.n: 1\.5 is not a value of type INT \(row 1, counted from 0"):
        db.insert("orders", [{"id": 1, "n": 1}, {"id": 2, "n": 1.5}], strict=True)
    assert stored(tmp_path) == []
    assert db.insert("orders", [{"id": 1, "n": 1}], strict=True) == 1


def test_whole_numbers_that_pandas_holds_as_floats_are_taken(db: lm.Database, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "n": [5.0, None, 7.0]})
    assert frame["n"].dtype == float
    assert db.insert("orders", frame).refused == ()
    assert stored(tmp_path) == [b'{"id":1,"n":5}', b'{"id":2,"n":null}', b'{"id":3,"n":7}']
    table = pa.table({"id": [1, 2], "n": [1.0, 1.5]})
    (refused,) = db.insert("orders", table).refused
    assert (refused.row, refused.column) == (1, "n")
    assert stored(tmp_path)[3:] == [b'{"id":1,"n":1}', b'{"id":2,"n":1.5}']


def test_events_are_no_rows_and_are_not_looked_at(db: lm.Database) -> None:
    db.sql("CREATE SOURCE events (id INT NOT NULL, PRIMARY KEY (id)) WITH (format = 'debezium-json')")
    assert db.insert("events", [{"op": "c", "after": {"id": 1}}]).refused == ()
