"""Which version a record has, on real streams: by its stamp or by its place, the same live and on a re-read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from tests.support.oracle import project_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[lm.Database]:
    (tmp_path / "input").mkdir()
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database


def create(db: lm.Database, tmp_path: Path, columns: str, options: str = "") -> None:
    db.sql(f"CREATE SOURCE s ({columns}) WITH (connector = 'files', path = '{tmp_path / 'input'}'{options})")
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', format = 'json', path = '{tmp_path / 'out'}')")
    # From the beginning, so that what the sink gets is what each epoch made of its records.
    db.run()


def feed(db: lm.Database, tmp_path: Path, *records: dict[str, object]) -> None:
    """One file, one epoch."""
    name = f"{len(list((tmp_path / 'input').iterdir())):03}.json"
    (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / name).rename(tmp_path / "input" / name)
    db.run()


def delivered(tmp_path: Path) -> list[dict[str, object]]:
    files = sorted((tmp_path / "out").iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def table(db: lm.Database, columns: str = "*") -> list[tuple[object, ...]]:
    return db.sql(f"SELECT {columns} FROM s ORDER BY id").fetchall()  # noqa: S608


FIVE = (
    "ADD COLUMN b INT DEFAULT 5",
    "ALTER COLUMN a TYPE BIGINT",
    "RENAME COLUMN a TO c",
    "DROP COLUMN b",
)
INTERLEAVED = (3, 1, 5, 2, 4, 4, 2, 1, 5, 3, 1, 2)


def row_of(schema: pa.Schema, number: int) -> dict[str, object]:
    return dict.fromkeys(schema.names, number * 10) | {"id": number, "n": {"x": number}}


def test_records_of_five_versions_in_one_epoch_come_out_as_the_oracle_says(db: lm.Database, tmp_path: Path) -> None:
    create(db, tmp_path, "id INT NOT NULL, a INT, n STRUCT<x: INT>", ", version_field = 'v'")
    schemas = [db.schema("s")]
    for change in FIVE:
        db.sql(f"ALTER SOURCE s {change}")
        schemas.append(db.schema("s"))
    rows = [(version, row_of(schemas[version - 1], number)) for number, version in enumerate(INTERLEAVED)]
    feed(db, tmp_path, *({"v": version, **row} for version, row in rows))
    expected = [found for version, row in rows for found in project_rows(schemas[version - 1], schemas[-1], [row])]
    assert db.sql("SELECT rows FROM laminar_catalog.epochs WHERE rows > 0").fetchall() == [(len(rows),)]
    assert sorted(delivered(tmp_path), key=lambda row: row["id"]) == expected
    assert db.sql("SELECT * FROM s ORDER BY id").arrow().to_pylist() == expected


def test_unstamped_records_across_a_rename_are_read_by_their_place(db: lm.Database, tmp_path: Path) -> None:
    create(db, tmp_path, "id INT, a INT")
    feed(db, tmp_path, {"id": 1, "a": 1})
    db.sql("ALTER SOURCE s RENAME COLUMN a TO b")
    # Before an epoch was planned with the new version, and after.
    assert table(db, "id, b") == [(1, 1)]
    feed(db, tmp_path, {"id": 2, "b": 2})
    assert [row.get("b", row.get("a")) for row in delivered(tmp_path)] == [1, 2]
    assert table(db, "id, b") == [(1, 1), (2, 2)]


def test_a_late_producer_that_sends_the_old_name_loses_nothing(db: lm.Database, tmp_path: Path) -> None:
    create(db, tmp_path, "id INT, a INT")
    db.sql("ALTER SOURCE s RENAME COLUMN a TO b")
    feed(db, tmp_path, {"id": 1, "a": 1}, {"id": 2, "b": 2}, {"id": 3, "a": 0, "b": 3})
    assert delivered(tmp_path) == [{"id": 1, "b": 1}, {"id": 2, "b": 2}, {"id": 3, "b": 3}]
    assert table(db) == [(1, 1), (2, 2), (3, 3)]


def test_old_names_are_not_read_when_the_source_says_so(db: lm.Database, tmp_path: Path) -> None:
    create(db, tmp_path, "id INT, a INT", ", accept_old_names = 'false'")
    db.sql("ALTER SOURCE s RENAME COLUMN a TO b")
    feed(db, tmp_path, {"id": 1, "a": 1}, {"id": 2, "b": 2})
    assert delivered(tmp_path) == [{"id": 1, "b": None}, {"id": 2, "b": 2}]
    assert table(db) == [(1, None), (2, 2)]


def test_a_column_dropped_and_added_again_is_another_column_live_and_on_a_re_read(
    db: lm.Database, tmp_path: Path
) -> None:
    create(db, tmp_path, "id INT, a INT")
    feed(db, tmp_path, {"id": 1, "a": 1})
    db.sql("ALTER SOURCE s DROP COLUMN a")
    assert table(db) == [(1,)]
    feed(db, tmp_path, {"id": 2, "a": 2})
    db.sql("ALTER SOURCE s ADD COLUMN a INT")
    # The version of the new column has no place yet: the old records are not of it.
    assert table(db) == [(1, None), (2, None)]
    feed(db, tmp_path, {"id": 3, "a": 3})
    assert delivered(tmp_path) == [{"id": 1, "a": 1}, {"id": 2}, {"id": 3, "a": 3}]
    assert table(db) == [(1, None), (2, None), (3, 3)]


def test_a_record_stamped_with_a_version_to_come_stays_a_dead_letter_until_it_is_replayed(
    db: lm.Database, tmp_path: Path
) -> None:
    create(db, tmp_path, "id INT", ", version_field = 'v'")
    feed(db, tmp_path, {"v": 1, "id": 1}, {"v": 2, "id": 2, "a": 2})
    db.sql("ALTER SOURCE s ADD COLUMN a INT")
    feed(db, tmp_path, {"v": 2, "id": 3, "a": 3})
    assert table(db) == [(1, None), (3, 3)]
    assert db.replay_dead_letters("s").rows == 1
    assert table(db) == [(1, None), (2, 2), (3, 3)]


def test_rows_inserted_many_versions_ago_are_still_rows(db: lm.Database) -> None:
    db.sql("CREATE SOURCE pushed (id INT, a INT DEFAULT 1)")
    db.insert("pushed", [{"id": 1}])
    for number in range(40):
        db.sql(f"ALTER SOURCE pushed ADD COLUMN c{number} INT")
    db.insert("pushed", [{"id": 2, "a": 2, "c39": 3}])
    db.run()
    assert db.sql("SELECT id, a, c39 FROM pushed ORDER BY id").fetchall() == [(1, 1, None), (2, 2, 3)]
    assert db.sql("SELECT sum(rows), sum(dead_letters) FROM laminar_catalog.epochs").fetchall() == [(2, 0)]
