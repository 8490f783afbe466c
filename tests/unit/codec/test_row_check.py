"""What `insert` knows of rows before an epoch reads them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from laminae.codec.row_check import RefusedRow, refused_rows
from tests.support.build import col, list_of, schema, struct

SCHEMA = schema(
    col("id", "bigint", null=False), col("n", "int"), col("x", "double"), col("ok", "bool"), col("name"),
    col("day", "date"), col("at", pa.timestamp("us", tz="UTC")), col("price", pa.decimal128(6, 2)), col("raw",
    "binary"),
    col("s", struct(col("a", "int"))), col("l", list_of(col("element", "int"))), col("status", default='"new"',
    null=False),
)  # fmt: skip

GOOD = [
    {"id": 1},
    {"id": 1, "n": 5, "x": 1, "ok": True, "name": "x", "day": "2024-01-02", "at": "2024-01-02T03:04:05Z"},
    {"id": 1, "price": 1.5, "raw": "aGk=", "s": {"a": 1}, "l": [1, None]},
    {"id": 1, "price": "1.5", "name": 5, "new": "a field that the source does not know"},
    {"id": 1, "Name": None},
]
BAD = {
    "id": [{}, {"id": None}, {"id": "1"}, {"id": 1.0}, {"id": 2**63}],
    "n": [{"id": 1, "n": 1.5}, {"id": 1, "n": True}],
    "x": [{"id": 1, "x": "1.5"}],
    "ok": [{"id": 1, "ok": 1}],
    "day": [{"id": 1, "day": "2024"}, {"id": 1, "day": 19000}],
    "at": [{"id": 1, "at": 1700000000000}, {"id": 1, "at": "10:00"}],
    "price": [{"id": 1, "price": 1.234}, {"id": 1, "price": 12345}],
    "raw": [{"id": 1, "raw": "*"}],
    "s": [{"id": 1, "s": []}],
    "s.a": [{"id": 1, "s": {"a": "x"}}],
    "l.element": [{"id": 1, "l": [1, "x"]}],
    "status": [{"id": 1, "status": None}],
    "Name": [{"id": 1, "Name": "x"}],
}


def documents(rows: list[dict]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def test_good_rows_are_passed_over() -> None:
    assert refused_rows(documents(GOOD), SCHEMA) == ()
    assert refused_rows([], SCHEMA) == ()


@pytest.mark.parametrize(("name", "rows"), BAD.items())
def test_bad_rows_are_named_with_their_column(name: str, rows: list[dict]) -> None:
    found = refused_rows(documents([GOOD[0], *rows]), SCHEMA)
    assert [(refused.row, refused.column) for refused in found] == [(i + 1, name) for i in range(len(rows))]


def test_a_number_is_a_timestamp_where_its_unit_is_known() -> None:
    (row,) = documents([{"id": 1, "at": 1700000000}])
    assert refused_rows([row], SCHEMA, takes_numbers=True) == ()
    assert refused_rows([row], SCHEMA) == (RefusedRow(0, "at", "1700000000 is not a value of type TIMESTAMP"),)


def test_a_former_name_that_differs_only_in_case_is_a_known_one() -> None:
    schema = pa.schema([("name", pa.string())])
    assert refused_rows([b'{"Name": "x"}'], schema, aliases=lambda: {"Name"}) == ()
    assert [row.column for row in refused_rows([b'{"Name": "x"}'], schema)] == ["Name"]
