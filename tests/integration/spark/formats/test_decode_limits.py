"""Records and schemas at the edges: odd names, depth, width, size; and that each record is parsed once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.decoders import Decoder, DecoderTable
from laminae.spark.formats.json.decode import decode
from laminae.spark.formats.protocol import ERROR, RAW_SCHEMA, ROW, UNKNOWN
from tests.support.build import col, schema, struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.decoding import Decode

FLAT = schema(col("id", "bigint", null=False), col("name"))


def test_names_are_taken_as_they_are(decoded: Decode) -> None:
    odd = schema(
        col("a.b", "int"), col("a`b", "int"), col("a b", "int"), col("日", "int"), col("it's", default='"q\'"')
    )
    value = json.dumps({"a.b": 1, "a`b": 2, "a b": 3, "日": 4}).encode()
    assert decoded([value, b'{"a.b":"x"}'], odd) == [
        ({"a.b": 1, "a`b": 2, "a b": 3, "日": 4, "it's": "q'"}, None, False),
        (None, "`a.b` is not a value of type INT", False),
    ]


def test_deep_nesting_is_read_and_too_deep_is_refused(decoded: Decode) -> None:
    deep = pa.int64()
    for _ in range(20):
        deep = struct(col("a", deep))
    value = b'{"s":' + b'{"a":' * 20 + b"1" + b"}" * 20 + b"}"
    wrong = value.replace(b"1", b'"x"')
    bottomless = b'{"s":' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b"}"
    (row, _, _), (_, error, _), (_, refused, _) = decoded([value, wrong, bottomless], schema(col("s", deep)))
    assert json.dumps(row, separators=(",", ":")).encode() == value
    assert error == "s" + ".a" * 20 + " is not a value of type BIGINT"
    assert refused == "the message is not JSON"


def test_a_record_of_ten_megabytes_is_read(decoded: Decode) -> None:
    text = "ü" * 5_000_000
    large = json.dumps({"id": 1, "name": text}, ensure_ascii=False).encode()
    too_large = b'{"id":1,"name":"' + b"x" * 21_000_000 + b'"}'
    (row, error, _), (_, refused, _) = decoded([large, too_large], FLAT)
    assert row is not None
    assert row["name"] == text
    assert error is None
    assert refused == "the message holds a text or number that is too long to read"


def test_many_columns_do_not_break_the_plan(decoded: Decode) -> None:
    wide = schema(*(col(f"c{i}", "int", null=i > 0) for i in range(300)))
    value = json.dumps({f"c{i}": i for i in range(300)}).encode()
    (row, error, _), (_, refused, _) = decoded([value, b'{"c299":1}'], wide)
    assert row == {f"c{i}": i for i in range(300)}
    assert error is None
    assert refused == "c0 is NULL in a NOT NULL column"


def test_a_record_is_parsed_once(spark: SparkSession) -> None:
    raw = spark.createDataFrame([], RAW_SCHEMA)
    good = decode(raw, DecoderTable((Decoder(1, FLAT, 0),), FLAT, finds_unknown_fields=True)).where(f"{ERROR} IS NULL")
    plan = good.select(f"{ROW}.*", UNKNOWN)._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("from_json(StructField(id,LongType") == 1
