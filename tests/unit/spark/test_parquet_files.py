"""Footers and how their columns continue those of a version, without Spark."""

import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.codec.decoders import Decoder
from laminae.schema.identity import assign_ids
from laminae.spark.formats.column_matching import grown, misfit, under_live_names, version_names
from laminae.spark.formats.parquet.footers import Footer, Refused, footer, footers
from laminae.spark.sources.files.listing import FileEntry


def field(name, kind, number=None, nullable=True):
    return pa.field(name, kind, nullable, None if number is None else {"PARQUET:field_id": str(number)})


def version(*fields, aliases=()):
    return Decoder(1, assign_ids(pa.schema(fields), 1)[0], 0, aliases)


def footer_of(tmp_path, table):
    pq.write_table(table, tmp_path / "f.parquet")
    return footer(str(tmp_path / "f.parquet"), (tmp_path / "f.parquet").stat().st_size, id(table))


def test_columns_have_the_types_that_spark_reads(tmp_path):
    given = {
        "u8": pa.array([1], pa.uint8()),
        "u64": pa.array([1], pa.uint64()),
        "text": pa.array(["x"], pa.large_string()).dictionary_encode(),
        "bytes": pa.array([b"ab"], pa.binary(2)),
        "span": pa.array([1], pa.duration("us")),
        "fine": pa.array([1], pa.timestamp("ns")),
        "zoned": pa.array([1], pa.timestamp("ns", "Europe/Rome")),
        "price": pa.array([decimal.Decimal("1.5")], pa.decimal128(5, 2)),
        "items": pa.array([[{"a": 1}]], pa.large_list(pa.struct([("a", pa.int16())]))),
        "pairs": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())),
    }
    found = footer_of(tmp_path, pa.table(given))
    assert isinstance(found, Footer)
    assert [str(kind) for kind in found.schema.types] == [
        "int16", "decimal128(20, 0)", "string", "binary", "int64", "timestamp[us]", "timestamp[us, tz=UTC]",
        "decimal128(5, 2)", "list<element: struct<a: int16>>", "map<string, int8>",
    ]  # fmt: skip
    assert found.nanoseconds == {"fine", "zoned"}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"t": pa.array([1], pa.time64("us"))}), "t is a time of day"),
        (pa.table({"s": [{"t": 1}]}).cast(pa.schema([("s", pa.struct([("t", pa.timestamp("ns"))]))])), "s.t has nanos"),
        (pa.table({"a": [1], "A": [1]}), "differs from a only in case"),
        (pa.table({"d": pa.array([decimal.Decimal(1)], pa.decimal256(50, 2))}), "no Spark type"),
    ],
)
def test_columns_that_cannot_be_read_refuse_the_file(tmp_path, table, reason):
    found = footer_of(tmp_path, table)
    assert isinstance(found, Refused)
    assert reason in found.reason


def test_footers_of_many_files_come_in_their_order(tmp_path):
    entries = []
    for number in range(20):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({f"c{number}": [1]}), file)
        entries.append(FileEntry(number, str(file), file.stat().st_size, 0))
    assert [found.schema.names for found in footers(entries)] == [[f"c{number}"] for number in range(20)]
    assert isinstance(footers([FileEntry(0, str(tmp_path / "gone"), 0, 0)])[0], Refused)


def test_a_former_name_stands_in_for_an_absent_live_one():
    instant = pa.timestamp("us", "UTC")
    decoder = version(field("cents", pa.int32()), field("at", instant), aliases=(("amount", "cents"),))
    assert under_live_names(pa.schema([("amount", pa.int32())]), decoder).names == ["cents"]
    both = pa.schema([("amount", pa.int32()), ("cents", pa.int32())])
    assert under_live_names(both, decoder).names == ["amount", "cents"]
    wall = under_live_names(pa.schema([("at", pa.timestamp("us"))]), decoder)
    assert wall.field("at").type == instant


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([field("id", pa.int64())], None),
        ([field("id", pa.int64()), field("s", pa.struct([("x", pa.int8())]))], None),
        ([field("s", pa.struct([("x", pa.int8())]))], "no column id"),
        ([field("id", pa.string())], "id is STRING in the file, which cannot become INT"),
        ([field("id", pa.int32()), field("s", pa.struct([("x", pa.string())]))], "s.x is STRING"),
        ([field("id", pa.int32()), field("S", pa.string())], "S differs from s only in case"),
    ],
)
def test_a_file_that_fits_no_record_is_told(found, expected):
    decoder = version(field("id", pa.int32(), nullable=False), field("s", pa.struct([("x", pa.int16())])))
    told = misfit(pa.schema(found), decoder.schema)
    assert told is None if expected is None else expected in told


def test_field_ids_decide_before_names():
    current = version(field("a", pa.int32(), 1), field("b", pa.int32(), 2)).schema
    swapped = pa.schema([field("b", pa.int32(), 1), field("a", pa.int32(), 2), field("c", pa.int8(), 3)])
    assert version_names(swapped, current) == ["a", "b", "c"]
    renamed = pa.schema([field("x", pa.int64(), 1), field("b", pa.int32(), 9)])
    assert version_names(renamed, current) == ["a", None]
    found = grown(current, renamed)
    assert found.names == ["x", "b"]
    assert found.types == [pa.int64(), pa.int32()]
    assert grown(current, renamed, {"a": frozenset({"x"})}).names == ["a", "b"]


def test_growth_adds_widens_and_takes_field_ids_over_in_nested_columns_too():
    current = version(
        field("s", pa.struct([("x", pa.int32())])),
        field("l", pa.list_(pa.int32())),
        field("m", pa.map_(pa.string(), pa.int32())),
        field("t", pa.string()),
    ).schema
    found = pa.schema(
        [
            field("s", pa.struct([field("x", pa.int64(), 11), field("y", pa.string(), 12)]), 1),
            field("l", pa.list_(pa.int64())),
            field("m", pa.map_(pa.string(), pa.int64())),
            field("t", pa.int32()),
            field("n", pa.null()),
            field("new", pa.bool_()),
        ]
    )
    result = grown(current, found)
    assert result.names == ["s", "l", "m", "t", "new"]
    assert [str(kind) for kind in result.types] == [
        "struct<x: int64, y: string>", "list<item: int64>", "map<string, int64>", "string", "bool",
    ]  # fmt: skip
    assert result.field("s").metadata[b"PARQUET:field_id"] == b"1"
    assert result.field("s").type.field("x").metadata[b"PARQUET:field_id"] == b"11"
    assert result.field("s").metadata[b"laminae:id"] == current.field("s").metadata[b"laminae:id"]
    assert grown(result, found).equals(result, check_metadata=True)
