"""The codec writes what the JVM writes: random rows of random nested schemas, byte for byte."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from laminae.state.codec import Migration, row_decoder, row_encoder
from laminae.state.compatibility import resolve
from laminae.state.types import Field, Leaf, Struct, parse_schema, struct
from tests.support.unsafe_rows import LEAVES, Rows, jvm_bytes, projection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def every_type(spark: SparkSession) -> SparkSession:
    """A session in which TIME may be used."""
    session = spark.newSession()
    session.conf.set("spark.sql.timeType.enabled", "true")
    return session


def test_every_type_is_written_as_the_jvm_writes_it(every_type: SparkSession) -> None:
    rows = Rows.with_dice(random.Random(1))
    kinds = Struct(tuple(Field(f"c{place}", Leaf(name)) for place, name in enumerate(LEAVES)))
    columns = [f"{rows.sql(field.type)} AS {field.name}" for field in kinds.fields]
    arrays = [f"ARRAY({rows.sql(f.type)}, {rows.sql(f.type)}, NULL) AS a{f.name}" for f in kinds.fields]
    frame = every_type.range(60).selectExpr(*columns, *arrays).localCheckpoint()
    found = parse_schema(frame.schema.json())
    assert {str(field.type) for field in found.fields} >= LEAVES.keys()
    decode, encode = row_decoder(found), row_encoder(found)
    for row in jvm_bytes(frame.select("*")):
        assert encode(decode(row)) == row


def test_an_interval_that_is_null_keeps_its_place_and_size(spark: SparkSession) -> None:
    (row,) = jvm_bytes(spark.sql("SELECT CAST(NULL AS INTERVAL) AS i, 'x' AS s"))
    assert row_encoder(struct(("i", Leaf("interval")), ("s", Leaf("string"))))((None, "x")) == row


@pytest.mark.parametrize("seed", range(3))
def test_migrated_rows_are_those_that_spark_makes_of_the_same_values(every_type: SparkSession, seed: int) -> None:
    assert differences(every_type, seed, rows=70) == 0


def test_a_row_of_more_than_64_fields_is_migrated(every_type: SparkSession) -> None:
    assert differences(every_type, seed=64, rows=20, fields=70, depth=0) == 0


def differences(spark: SparkSession, seed: int, rows: int, fields: int = 9, depth: int = 3) -> int:
    """Rows whose bytes differ: decoded and encoded again, or migrated to a random change of the schema."""
    made = Rows.with_dice(random.Random(seed))
    old = made.struct(fields, depth)
    frame = spark.range(rows).selectExpr(f"{made.value(old)} AS v").localCheckpoint()
    read = parse_schema(frame.schema.json()).fields[0].type
    assert isinstance(read, Struct)
    new = made.changed(old)
    assert isinstance(new, Struct)
    before = jvm_bytes(frame.select("v.*"))
    decode, encode = row_decoder(read), row_encoder(read)
    again = sum(encode(decode(row)) != row for row in before)
    verdict = resolve(old, new)
    if verdict.mapping is None:
        return again
    after = jvm_bytes(frame.selectExpr(f"{projection('v', old, new)} AS v").select("v.*"))
    migrated: list[bytes] = Migration.of(old, new, verdict.mapping).batch(pa.array(before, pa.binary())).to_pylist()
    return again + sum(ours != theirs for ours, theirs in zip(migrated, after, strict=True))
