"""Framed records by `from_avro` to rows: every type, many ids in one pass, and a reason for what cannot be read."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from laminae.catalog.model import WriterRecord
from laminae.codec.avro.to_columns import columns_of_avro
from laminae.codec.decoders import Decoder, DecoderTable
from laminae.schema.external.writer_schema import bound
from laminae.schema.identity import assign_ids
from laminae.spark.catalyst.session import settle_epochs
from laminae.spark.formats.avro.decode import avro_records
from laminae.spark.formats.fast_path import quick_rows
from laminae.spark.formats.protocol import ERROR, RAW_SCHEMA, ROW, UNKNOWN
from tests.support.avro_records import framed, record_schema
from tests.support.fuzzing import SEED, mutated_bytes
from tests.support.registry_double import avro_field as field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("connector_jars")]

INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [field("x", "int"), field("at", {"type": "int", "logicalType": "time-millis"})],
}
KINDS: dict[str, tuple[object, Any, Any]] = {
    "bo": ("boolean", True, True),
    "i": ("int", -5, -5),
    "l": ("long", 2**40, 2**40),
    "f": ("float", 1.5, 1.5),
    "d": ("double", -0.25, -0.25),
    "by": ("bytes", b"\x00\xff", b"\x00\xff"),
    "s": ("string", "größe", "größe"),
    "e": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
    "fx": ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
    "dt": ({"type": "int", "logicalType": "date"}, date(2024, 2, 29), date(2024, 2, 29)),
    "tm": ({"type": "int", "logicalType": "time-millis"}, time(23, 59, 59, 999000), time(23, 59, 59, 999000)),
    "tu": ({"type": "long", "logicalType": "time-micros"}, time(1, 2, 3, 4), time(1, 2, 3, 4)),
    "ts": (
        {"type": "long", "logicalType": "timestamp-millis"},
        datetime(2024, 1, 2, 3, 4, 5, 6000, UTC),
        datetime(2024, 1, 2, 3, 4, 5, 6000, UTC),
    ),
    "tn": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        datetime(2024, 1, 2, 3, 4, 5, 6),
        datetime(2024, 1, 2, 3, 4, 5, 6),
    ),
    "dec": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        Decimal("-123.45"),
        Decimal("-123.45"),
    ),
    "du": (
        {"type": "fixed", "name": "Du", "size": 12, "logicalType": "duration"},
        (1).to_bytes(4, "little") + (2**32 - 1).to_bytes(4, "little") + (3).to_bytes(4, "little"),
        {"months": 1, "days": 2**32 - 1, "millis": 3},
    ),
    "r": (INNER, {"x": 1, "at": time(0, 0, 1)}, {"x": 1, "at": time(0, 0, 1)}),
    "a": (
        {"type": "array", "items": ["null", "Inner"]},
        [None, {"x": 2, "at": time(0)}],
        [None, {"x": 2, "at": time(0)}],
    ),
    "m": ({"type": "map", "values": "long"}, {"k": 7}, {"k": 7}),
    "n": (["null", "string"], None, None),
    "il": (["int", "long"], 3, 3),
    "u": (["null", "int", "string"], "text", {"member0": None, "member1": "text"}),
}


def writer(schema_id: int, text: str, current: pa.Schema) -> WriterRecord:
    return WriterRecord(1, schema_id, 0, 1, True, None, text, bound(columns_of_avro(text), None, current))


def table(current: pa.Schema, *writers: WriterRecord) -> DecoderTable:
    return DecoderTable((Decoder(1, current, 0),), current, has_stamps=False, writers=writers)


def raw(spark: SparkSession, *values: bytes | None) -> DataFrame:
    rows = [(None, value, "t-0", place, 0, None, None) for place, value in enumerate(values)]
    return spark.createDataFrame(rows, RAW_SCHEMA)


@pytest.fixture(autouse=True)
def as_in_epochs(spark: SparkSession) -> Iterator[None]:
    settle_epochs(spark)
    yield
    spark.conf.unset("spark.sql.optimizer.excludedRules")


def rows(frame: DataFrame) -> list[Any]:
    return [row.asDict(recursive=True) for row in frame.orderBy("offset").collect()]


def read(spark: SparkSession, known: DecoderTable, *values: bytes | None) -> list[Any]:
    """What is read of these records. The quick way, which asks for no reason, has the same rows."""
    found = rows(avro_records(raw(spark, *values), known))
    quick = quick_rows(spark, known, lambda columns: raw(spark, *values).select(*columns), None)
    made = [row.asDict(recursive=True) for row in quick.frame().collect()]
    wanted = [row[ROW] for row in found if row[ERROR] is None]
    assert sorted(map(repr, made)) == sorted(map(repr, wanted))
    assert quick.refused() == (len(made) < len(values))
    return found


@pytest.fixture(scope="module")
def everything() -> str:
    return record_schema(*(field(name, kind) for name, (kind, _, _) in KINDS.items()))


@pytest.mark.usefixtures("time_of_day")
def test_every_type_is_read_as_its_column(spark: SparkSession, everything: str) -> None:
    current, _ = assign_ids(columns_of_avro(everything), 1)
    value = framed(7, everything, {name: given for name, (_, given, _) in KINDS.items()})
    (found,) = read(spark, table(current, writer(7, everything, current)), value)
    assert found[ERROR] is None
    assert found["version"] == 7
    expected = {name: wanted for name, (_, _, wanted) in KINDS.items()}
    expected["ts"] = expected["ts"].replace(tzinfo=None)
    assert found[ROW] == expected


V1 = record_schema(field("id"), field("amount", "int"))
V2 = record_schema(field("id"), field("amount", "long"), field("note", ["null", "string"], default=None))


@pytest.fixture(scope="module")
def current() -> pa.Schema:
    return assign_ids(columns_of_avro(V2), 1)[0]


def test_ids_are_read_together_and_each_by_its_own_schema(spark: SparkSession, current: pa.Schema) -> None:
    both = table(current, writer(1, V1, current), writer(300, V2, current))
    values = [
        framed(1, V1, {"id": 1, "amount": 10}),
        framed(300, V2, {"id": 2, "amount": 2**40, "note": "n"}),
        framed(1, V1, {"id": 3, "amount": 30}),
    ]
    found = read(spark, both, *values)
    assert [(row[ROW]["id"], row[ROW]["amount"], row[ROW]["note"]) for row in found] == [
        (1, 10, None),
        (2, 2**40, "n"),
        (3, 30, None),
    ]


def test_ids_that_differ_in_names_alone_are_read_as_one(spark: SparkSession) -> None:
    older = record_schema(field("id", "int"), field("amount", "long"))
    newer = record_schema(field("id", "int"), {**field("total", "long"), "aliases": ["amount"]})
    wider = record_schema(field("id", "int"), field("total", "long"), field("note", ["null", "string"]))
    current, _ = assign_ids(columns_of_avro(newer), 1)
    known = table(current, *(writer(i, text, current) for i, text in enumerate((older, newer, wider), 1)))
    values = [
        framed(1, older, {"id": 1, "amount": 10}),
        framed(2, newer, {"id": 2, "total": 20}),
        framed(3, wider, {"id": 3, "total": 30, "note": "n"}),
        framed(2, newer, {"id": 4, "total": 40})[:-1],
    ]
    decoded = avro_records(raw(spark, *values), known)
    readings = decoded._jdf.queryExecution().analyzed().toString().count("from_avro(")
    assert readings == 2
    *good, bad = read(spark, known, *values)
    assert [row[ROW] for row in good] == [{"id": number, "total": 10 * number} for number in (1, 2, 3)]
    assert [row["version"] for row in good] == [1, 2, 3]
    assert bad[ERROR] == "its bytes do not match schema id 2"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the record has no value"),
        (b"", "not in the Confluent wire format"),
        (b"{}", "not in the Confluent wire format"),
        (b"\x01" + bytes(20), "GUID"),
        (framed(1, V1, {"id": 1, "amount": 1})[:-1], "do not match schema id 1"),
        (framed(1, V1, {"id": 1, "amount": 1}) + b"\x00", "do not match schema id 1"),
        (framed(5, V1, {"id": 1, "amount": 1}), "not under the subject"),
    ],
)
def test_what_cannot_be_read_has_a_reason(
    spark: SparkSession, current: pa.Schema, value: bytes | None, reason: str
) -> None:
    unfit = WriterRecord(1, 5, 0, None, False, "it is not under the subject", "", pa.schema([]))
    known = table(current, writer(1, V1, current), unfit)
    (found,) = read(spark, known, value)
    assert reason in found[ERROR]
    assert not found[UNKNOWN]


def test_an_id_that_nobody_knows_is_marked(spark: SparkSession, current: pa.Schema) -> None:
    for known in (table(current, writer(1, V1, current)), table(current)):
        (found,) = read(spark, known, framed(2**31 - 1, V1, {"id": 1, "amount": 1}))
        assert (found[UNKNOWN], found["version"]) == (True, 2**31 - 1)
        assert str(2**31 - 1) in found[ERROR]


def test_a_record_of_nothing_but_nulls_is_a_row(spark: SparkSession) -> None:
    text = record_schema(field("a", ["null", "long"]), field("b", ["null", "string"]))
    current, _ = assign_ids(columns_of_avro(text), 1)
    (found,) = read(spark, table(current, writer(1, text, current)), framed(1, text, {"a": None, "b": None}))
    assert (found[ERROR], found[ROW]) == (None, {"a": None, "b": None})


def test_a_value_that_does_not_fit_has_its_path_and_reason(spark: SparkSession) -> None:
    narrow, _ = assign_ids(columns_of_avro(V1), 1)
    values = [framed(2, V2, {"id": 1, "amount": number, "note": None}) for number in (5, 2**40)]
    good, bad = read(spark, table(narrow, writer(2, V2, narrow)), *values)
    assert good[ROW] == {"id": 1, "amount": 5}
    assert bad[ERROR] == "amount cannot become INT without losing its value"


def test_a_null_where_none_may_be_has_its_path_and_reason(spark: SparkSession) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [field("x", ["null", "int"])]}
    strict = {"type": "record", "name": "Inner", "fields": [field("x", "int")]}
    sent = record_schema(
        field("id", ["null", "long"]), field("r", inner), field("a", {"type": "array", "items": "Inner"})
    )
    asked = record_schema(field("id"), field("r", strict), field("a", {"type": "array", "items": "Inner"}))
    current, _ = assign_ids(columns_of_avro(asked), 1)
    one, none = {"x": 1}, {"x": None}
    given = [(1, one, [one]), (None, one, [one]), (1, none, [one]), (1, one, [one, none]), (1, one, [])]
    values = [framed(1, sent, {"id": number, "r": record, "a": items}) for number, record, items in given]
    found = read(spark, table(current, writer(1, sent, current)), *values)
    assert [row[ERROR] for row in found] == [
        None,
        "id is NULL in a NOT NULL column",
        "r.x is NULL in a NOT NULL column",
        "a.element.x is NULL in a NOT NULL column",
        None,
    ]


@pytest.mark.parametrize("name", ["must", "offset"])
def test_a_column_that_no_record_has_and_none_may_lack_is_named(spark: SparkSession, name: str) -> None:
    sent = record_schema(field("item"))
    current, _ = assign_ids(columns_of_avro(record_schema(field("item"), field(name))), 1)
    known = table(current, writer(1, sent, current))
    (found,) = read(spark, known, framed(1, sent, {"item": 1}))
    assert found[ERROR] == f"{name} is NOT NULL, has no default, and the older version does not have it"
    # A session that leaves such plans out would read what is left of one as the records.
    spark.conf.unset("spark.sql.optimizer.excludedRules")
    with pytest.raises(AssertionError, match="without its leaf"):
        quick_rows(spark, replace(known), lambda columns: raw(spark).select(*columns), None).frame()


def test_a_record_without_fields_is_a_row(spark: SparkSession) -> None:
    sent = record_schema()
    known = table(columns_of_avro(sent), writer(1, sent, columns_of_avro(sent)))
    found = read(spark, known, framed(1, sent, {}), framed(1, sent, {}) + b"x")
    assert [row[ERROR] is None for row in found] == [True, False]


def test_a_default_is_the_text_that_it_is(spark: SparkSession) -> None:
    sent = record_schema(field("id"))
    text = "${env:HOME} ${spark.app.name} $ \\${x} it's"
    wider = record_schema(field("id"), field("note", "string", default=text))
    current, _ = assign_ids(columns_of_avro(wider), 1)
    (found,) = read(spark, table(current, writer(1, sent, current)), framed(1, sent, {"id": 1}))
    assert found[ROW] == {"id": 1, "note": text}


@pytest.mark.usefixtures("time_of_day")
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.chaos)])
def test_every_mutated_record_is_a_row_or_has_a_reason(spark: SparkSession, everything: str, count: int) -> None:
    current, _ = assign_ids(columns_of_avro(everything), 1)
    known = table(current, writer(7, everything, current))
    good = framed(7, everything, {name: given for name, (_, given, _) in KINDS.items()})
    chance = random.Random(SEED)
    for start in range(0, count, 2_500):
        size = min(2_500, count - start)
        values = [mutated_bytes(chance, good) if chance.random() < 0.9 else good for _ in range(size)]
        found = read(spark, known, *values)
        assert len(found) == size
        assert all(value != good or row[ERROR] is None for value, row in zip(values, found, strict=True)), SEED
