"""A wrong argument of the public API is a LaminaeError that names it, at the call itself; nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest

import laminae as lm
from laminae.errors import InvalidName, InvalidOption, InvalidRow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(tmp_path / "home") as database:
        database.sql("CREATE SOURCE s (id BIGINT, n STRING)")
        yield database


def deep(levels: int) -> dict[str, object]:
    row: dict[str, object] = {}
    for _ in range(levels):
        row = {"x": row}
    return row


def circle() -> dict[str, object]:
    row: dict[str, object] = {}
    row["x"] = row
    return row


@pytest.mark.parametrize("rows", [None, 1, 1.5, "text", b"bytes", object(), dict, len])
def test_what_are_no_rows_is_refused_by_its_type(db: lm.Database, rows: object) -> None:
    with pytest.raises(InvalidOption, match=f"rows of insert into s is not valid: it is {type(rows).__name__}"):
        db.insert("s", rows)


@pytest.mark.parametrize("rows", [[None], [1], [["id", 1]], ["id"], {"id"}, pa.array([1]), pd.Series([1])])
def test_a_row_that_is_no_mapping_is_refused_by_its_number(db: lm.Database, rows: object) -> None:
    with pytest.raises(InvalidRow, match=r"Row 0 .* not a mapping"):
        db.insert("s", rows)


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame([[1, 2]], columns=["id", "id"]),
        pa.table([[1], [2]], ["id", "id"]),
    ],
)
def test_two_columns_of_one_name_are_refused(db: lm.Database, rows: object) -> None:
    with pytest.raises(InvalidRow, match="at id: two columns have this name"):
        db.insert("s", rows)


def test_a_pandas_column_of_several_types_is_taken_value_by_value(db: lm.Database) -> None:
    assert db.insert("s", pd.DataFrame({"id": [1, "x", None, 2.5], "n": ["a", "b", "c", "d"]})) == 4


@pytest.mark.parametrize(
    ("rows", "place", "problem"),
    [
        (pa.table({"id": pa.array([0, 10**7], pa.date32())}), "Row 1 .* at id", "out of range"),
        (pa.table({"n": pa.array([b"\xff"], pa.binary()).view(pa.string())}), "Row 0 .* at n", "utf-8"),
        (pa.table({"n": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8()))}), "at n", "duplicate key"),
        (pd.DataFrame({"id": [1, object()]}), "Row 1 .* at id", "object has no JSON form"),
        (pd.DataFrame({"id": [1j]}), "Row 0 .* at id", "complex has no JSON form"),
        ([{"id": 1}, circle()], "Row 1 .* at the row itself", "contains itself"),
        ([deep(400)], "Row 0", "Recursion limit|nested too deeply"),
        ([deep(5_000)], "Row 0", "nested too deeply"),
    ],
)
def test_a_value_without_a_form_is_named(db: lm.Database, rows: object, place: str, problem: str) -> None:
    with pytest.raises(InvalidRow, match=f"(?i){place}.*({problem})"):
        db.insert("s", rows)


@pytest.mark.parametrize("name", [None, 1, b"s", [], 1.5])
def test_a_name_that_is_no_text_is_refused_by_every_call(db: lm.Database, name: object) -> None:
    calls = (db.version, db.history, db.schema, db.changes, db.last_change, db.savepoint, db.restore, db.drop_savepoint)
    for call in calls:
        with pytest.raises(InvalidName, match="not text"):
            call(name)  # type: ignore[arg-type,operator]  # that is the point


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 256])
def test_a_savepoint_has_a_name_that_every_catalog_can_keep(db: lm.Database, name: str) -> None:
    with pytest.raises(InvalidName):
        db.savepoint(name)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("spark", 1), ("catalog", 1), ("jars", None), ("jars", "one.jar"), ("jars", [1]), ("config", 1),
        ("config", [1]), ("config", {1: "x"}), ("config", {"a": object()}), ("on_change", 1),
    ],
)  # fmt: skip
def test_connect_names_the_argument_that_it_cannot_use(tmp_path: Path, argument: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"Option {argument}.* of connect"):
        lm.connect(tmp_path / "home", **{argument: value})  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("since", [None, "x", 1.5, True, []])
def test_changes_are_asked_for_since_a_number(db: lm.Database, since: object) -> None:
    with pytest.raises(InvalidOption, match="since_epoch of changes"):
        db.changes("s", since)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("trigger", ["99999999999999999999 weeks", "1e9 days", "9" * 400 + " days", "1001 years"])
def test_a_trigger_is_a_duration_that_a_clock_can_hold(db: lm.Database, trigger: str) -> None:
    with pytest.raises(InvalidOption, match="trigger of start"):
        db.start(trigger)


@pytest.mark.parametrize(
    "option",
    ["spool_retention = '999999999999 weeks'", f"dead_letter_limit = '{'9' * 5000}'", f"max_new_columns = '{2**80}'"],
)
def test_an_option_is_a_number_that_every_part_can_hold(db: lm.Database, option: str) -> None:
    with pytest.raises(InvalidOption, match="does not fit"):
        db.sql(f"CREATE SOURCE t (id BIGINT) WITH ({option})")


@pytest.mark.parametrize("limit", [None, -1, "x", 1.5, 2**70])
def test_show_takes_a_number_of_rows(db: lm.Database, limit: object) -> None:
    with pytest.raises(InvalidOption, match="limit of show"):
        db.sql("SHOW SOURCES").show(limit)  # type: ignore[arg-type]  # that is the point


def test_the_repr_of_an_answer_shows_its_rows(db: lm.Database) -> None:
    shown = repr(db.sql("SELECT name, version FROM laminar_catalog.sources"))
    assert shown == "name  version\ns     1"
    for number in range(30):
        db.sql(f"CREATE SOURCE t{number} (id BIGINT)")
    lines = repr(db.sql("SELECT name FROM laminar_catalog.sources")).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "... the first 20 rows"
