"""The table of SQL types, in both directions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laminae.errors import InvalidSchema
from laminae.schema.types import TYPES, VARIANT, arrow_type, quote_identifier, sql_type
from laminae.sql import AlterColumnType, parse


def read(text: str) -> pa.DataType:
    (statement,) = parse(f"ALTER SOURCE s ALTER COLUMN c TYPE {text}")
    assert isinstance(statement, AlterColumnType)
    return statement.type


UTC = pa.timestamp("us", tz="UTC")
NAMES: list[tuple[str, pa.DataType, str]] = [
    ("boolean", pa.bool_(), "BOOLEAN"),
    ("TINYINT", pa.int8(), "TINYINT"),
    ("BYTE", pa.int8(), "TINYINT"),
    ("SMALLINT", pa.int16(), "SMALLINT"),
    ("SHORT", pa.int16(), "SMALLINT"),
    ("INT", pa.int32(), "INT"),
    ("INTEGER", pa.int32(), "INT"),
    ("BIGINT", pa.int64(), "BIGINT"),
    ("LONG", pa.int64(), "BIGINT"),
    ("FLOAT", pa.float32(), "FLOAT"),
    ("REAL", pa.float32(), "FLOAT"),
    ("DOUBLE", pa.float64(), "DOUBLE"),
    ("DECIMAL", pa.decimal128(10, 0), "DECIMAL(10, 0)"),
    ("DEC(5)", pa.decimal128(5, 0), "DECIMAL(5, 0)"),
    ("NUMERIC(38, 38)", pa.decimal128(38, 38), "DECIMAL(38, 38)"),
    ("STRING", pa.string(), "STRING"),
    ("TEXT", pa.string(), "STRING"),
    ("VARCHAR", pa.string(), "STRING"),
    ("VARCHAR(20)", pa.string(), "STRING"),
    ("CHAR(3)", pa.string(), "STRING"),
    ("CHARACTER(3)", pa.string(), "STRING"),
    ("BINARY", pa.binary(), "BINARY"),
    ("BYTES", pa.binary(), "BINARY"),
    ("DATE", pa.date32(), "DATE"),
    ("TIME", pa.time64("ns"), "TIME"),
    ("TIME(6)", pa.time64("ns"), "TIME"),
    ("TIMESTAMP", UTC, "TIMESTAMP"),
    ("TIMESTAMP_LTZ", UTC, "TIMESTAMP"),
    ("TIMESTAMP_NTZ", pa.timestamp("us"), "TIMESTAMP_NTZ"),
    ("INTERVAL DAY TO SECOND", pa.duration("us"), "INTERVAL DAY TO SECOND"),
    ("interval hour to minute", pa.duration("us"), "INTERVAL DAY TO SECOND"),
    ("INTERVAL SECOND", pa.duration("us"), "INTERVAL DAY TO SECOND"),
    ("INTERVAL YEAR TO MONTH", pa.month_day_nano_interval(), "INTERVAL YEAR TO MONTH"),
    ("INTERVAL MONTH", pa.month_day_nano_interval(), "INTERVAL YEAR TO MONTH"),
    ("VOID", pa.null(), "VOID"),
    ("VARIANT", VARIANT, "VARIANT"),
    ("ARRAY<INT>", pa.list_(pa.field("element", pa.int32())), "ARRAY<INT>"),
    ("MAP<STRING, INT>", pa.map_(pa.string(), pa.field("value", pa.int32())), "MAP<STRING, INT>"),
    (
        "MAP<STRING,ARRAY<ARRAY<INT>>>",
        pa.map_(pa.string(), pa.list_(pa.field("element", pa.list_(pa.field("element", pa.int32()))))),
        "MAP<STRING, ARRAY<ARRAY<INT>>>",
    ),
    ("STRUCT<>", pa.struct([]), "STRUCT<>"),
    (
        "struct<a INT NOT NULL COMMENT 'it''s', `b c`: STRING>",
        pa.struct([pa.field("a", pa.int32(), False, {"comment": "it's"}), pa.field("b c", pa.string())]),
        "STRUCT<a: INT NOT NULL COMMENT 'it''s', `b c`: STRING>",
    ),
]


@pytest.mark.parametrize(("text", "type_", "printed"), NAMES, ids=[row[0] for row in NAMES])
def test_each_name_is_read_printed_and_read_again(text: str, type_: pa.DataType, printed: str) -> None:
    assert read(text).equals(type_, check_metadata=True)
    assert sql_type(type_) == printed
    assert read(printed).equals(type_, check_metadata=True)


def test_every_row_of_the_table_is_read_by_all_its_names() -> None:
    for row in TYPES:
        for name in (row.name, *row.aliases):
            assert read(name).equals(row.arrow, check_metadata=True)


def test_a_struct_that_looks_like_a_variant_is_a_struct() -> None:
    lookalike = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
    assert sql_type(lookalike) == "STRUCT<value: BINARY NOT NULL, metadata: BINARY NOT NULL>"
    assert sql_type(VARIANT) == "VARIANT"


def test_a_variant_stays_one_when_its_fields_get_ids() -> None:
    marked = [field.with_metadata({**(field.metadata or {}), b"laminae:id": b"7"}) for field in VARIANT]
    assert sql_type(pa.struct(marked)) == "VARIANT"


def test_structs_that_differ_in_comments_print_differently() -> None:
    assert [sql_type(read(text)) for text in ("STRUCT<a: INT>", "STRUCT<a: INT COMMENT 'x'>", "STRUCT<a: INT>")] == [
        "STRUCT<a: INT>",
        "STRUCT<a: INT COMMENT 'x'>",
        "STRUCT<a: INT>",
    ]


@pytest.mark.parametrize(
    ("type_", "printed"),
    [
        (pa.uint8(), "uint8"),
        (pa.large_string(), "large_string"),
        (pa.timestamp("ms"), "timestamp[ms]"),
        (pa.dictionary(pa.int32(), pa.string()), "dictionary<values=string, indices=int32, ordered=0>"),
        (pa.decimal256(50, 2), "decimal256(50, 2)"),
        (pa.list_(pa.uint16()), "ARRAY<uint16>"),
    ],
)
def test_a_type_that_spark_has_no_name_for_prints_as_arrow_does(type_: pa.DataType, printed: str) -> None:
    assert sql_type(type_) == printed


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("DECIMAL", (0,), "precision"),
        ("DECIMAL", (39,), "precision"),
        ("DECIMAL", (5, 6), "scale"),
        ("INT", (5,), "no number"),
        ("VARCHAR", (5, 6), "at most 1"),
        ("TIME", (7,), "0 to 6"),
        ("STRNG", (), "did you mean STRING"),
        ("jsonb", (), "did you mean VARIANT"),
    ],
)
def test_a_wrong_type_is_refused_with_its_reason(name: str, arguments: tuple[int, ...], problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        arrow_type(name, arguments)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("orders", "orders"),
        ("type", "type"),
        ("_x1", "_x1"),
        ("order", "`order`"),
        ("a b", "`a b`"),
        ("1a", "`1a`"),
        ("a`b", "`a``b`"),
        ("größe", "`größe`"),
    ],
)
def test_a_name_is_quoted_when_it_has_to_be(name: str, quoted: str) -> None:
    assert quote_identifier(name) == quoted
