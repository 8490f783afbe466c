"""Plans that are kept from epoch to epoch: what they give, what they count, and when they are not used."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import StructType

from laminae.spark.catalyst.plans.plan_template import Template
from laminae.spark.catalyst.plans.prepared_frame import MappedFrame, PreparedFrame, mapped, no_rows
from laminae.spark.formats.fast_path import TemplateRows
from laminae.spark.formats.frame_rows import FrameRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

LONG = "value BIGINT"


@pytest.fixture
def places(spark: SparkSession, tmp_path: Path) -> list[str]:
    """Three files of numbers, under names that Spark's readers would take for patterns."""
    found = []
    for number in range(3):
        place = tmp_path / f"a [{number}] {{b}} *"
        spark.range(number * 10, number * 10 + 10).selectExpr("id AS value").coalesce(1).write.parquet(str(place))
        (file,) = place.glob("*.parquet")
        found.append(str(file.rename(tmp_path / f"n [{number}] {{?}}.parquet")))
    return found


def read(spark: SparkSession, path: str) -> DataFrame:
    escaped = "".join(f"\\{letter}" if letter in "[]{}?*" else letter for letter in path)
    return spark.read.schema(LONG).parquet(escaped)


def even(spark: SparkSession) -> Template:
    leaf = no_rows(spark, LONG)
    return Template(leaf, leaf.where("value % 2 = 0").select((F.col("value") * 10).alias("ten")))


def by_hundred(spark: SparkSession) -> Template:
    leaf = no_rows(spark, "ten BIGINT")
    return Template(leaf, leaf.groupBy((F.col("ten") / 100).cast("int").alias("k")).agg(F.sum("ten").alias("s")))


def rows(spark: SparkSession, template: Template, path: str) -> TemplateRows:
    def files(_: Sequence[str]) -> list[str]:
        return [path]

    return TemplateRows(spark, lambda columns: template, lambda columns: read(spark, path), files)


def test_a_kept_plan_gives_the_rows_of_each_file_and_counts_them_apart(spark, places):
    template = even(spark)
    for number, path in enumerate(places):
        found = rows(spark, template, path)
        assert sorted(row.ten for row in found.frame().collect()) == [
            10 * value for value in range(number * 10, number * 10 + 10, 2)
        ]
        assert found.count() == 5
        assert found.refused()
    assert template.again(spark, [places[0]]) is not None


def test_a_plan_upon_a_plan_is_kept_with_its_shuffle(spark, places):
    template, above = even(spark), by_hundred(spark)
    for number, path in enumerate(places):
        found = rows(spark, template, path)
        total = sum(10 * value for value in range(number * 10, number * 10 + 10, 2))
        assert [tuple(row) for row in found.under(above).collect()] == [(number, total)]
        assert found.count() == 5
    assert template.again(spark, [places[0]], above) is not None
    assert template.again(spark, [places[0]]) is None


def test_a_file_that_is_gone_is_not_passed_over(spark, places):
    template = even(spark)
    for path in places[:2]:
        rows(spark, template, path).frame().collect()
    assert template.again(spark, [places[1]]) is not None
    assert template.again(spark, [places[1], f"{places[1]}.gone"]) is None


def test_a_plan_with_two_inputs_or_without_code_of_its_own_is_made_anew(spark, places):
    template = even(spark)
    for _ in range(2):
        template.upon(read(spark, places[0]).union(read(spark, places[1])), keeps=True)
    assert template.again(spark, [places[0]]) is None
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        found = rows(spark, template, places[2]).frame()
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")
    assert found.count() == 5
    assert template.again(spark, [places[0]]) is None


@dataclass(frozen=True)
class Add:
    """A function upon batches that differs from epoch to epoch, as kernels do by what they know."""

    number: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = pc.add(batch.column("s"), self.number)
            texts = pc.if_else(pc.equal(pc.bit_wise_and(values, 1), 1), values.cast(pa.string()), None)
            yield pa.RecordBatch.from_arrays([values, texts], names=["ten", "odd"])


@pytest.mark.parametrize(
    ("sent_by", "steps"),
    [
        (["k"], ["HashAggregate", "Exchange", "HashAggregate"]),
        ([], ["HashAggregate", "Exchange", "HashAggregate"]),
        # What decides where a row goes is not known of sums: Spark must shuffle these once more.
        (["value"], ["HashAggregate", "Exchange", "HashAggregate", "Exchange"]),
    ],
)
def test_rows_are_added_up_before_they_are_sent_where_they_then_can_be(spark, sent_by, steps):
    leaf = no_rows(spark, "k BIGINT, note STRING, value BIGINT")
    sent = leaf.repartition(2, *sent_by) if sent_by else leaf.repartition(1)
    made = sent.groupBy("k", "note").agg(F.sum("value").alias("s")).withColumn("at", F.spark_partition_id())
    rows = spark.range(0, 1000, 1, 2).selectExpr("id % 3 AS k", "IF(id % 50 = 0, 'n', NULL) AS note", "id AS value")
    found = Template(leaf, made).upon(rows)
    plan = found._prepared.plan.toString()
    assert re.findall(r"HashAggregate|Exchange", plan) == steps
    expected = rows.groupBy("k", "note").agg(F.sum("value").alias("s")).collect()
    got = found.frame.collect()
    assert sorted((row.k, str(row.note), row.s) for row in got) == sorted((r.k, str(r.note), r.s) for r in expected)
    if sent_by != ["value"]:
        assert len({(row.k, row.at) for row in got}) == 3, "the sums of a key are in one place"


def test_functions_upon_kept_plans_and_plans_upon_these(spark, places):
    # Workers cannot import the tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    template, above, again = even(spark), by_hundred(spark), by_hundred(spark)
    out = StructType().add("ten", "long").add("odd", "string")
    for number, path in enumerate(places):
        total = sum(10 * value for value in range(number * 10, number * 10 + 10, 2))
        groups = rows(spark, template, path).under(above)
        assert isinstance(groups, PreparedFrame)
        found = mapped(groups, Add(number), out)
        assert isinstance(found, MappedFrame)
        assert found.columns == ["ten", "odd"]
        # By the frame, by the notes alone, and by another plan: each is a job of its own.
        assert [tuple(row) for row in found.collect()] == [(total + number, str(total + 1) if number == 1 else None)]
        assert found.texts("odd") == ([str(total + 1)] if number == 1 else [])
        over = FrameRows(found, is_bare=True).under(again)
        assert [tuple(row) for row in over.collect()] == [((total + number) // 100, total + number)]
    assert mapped(read(spark, places[0]).selectExpr("value AS s"), Add(1), out).count() == 10
