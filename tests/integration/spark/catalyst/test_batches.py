"""How many rows a kernel is handed at once: by what the rows are like, and never with a step for each row before it."""

from __future__ import annotations

import pytest

from laminae.spark.tasks.arrow_batches import BYTES, DEFAULT_LIMITS, FEW, LIMITED, MANY, ROWS, UNLIMITED, limit_batches


@pytest.mark.parametrize(
    ("columns", "rows", "size"),
    [
        ("k BIGINT, d DECIMAL(38, 2), t TIMESTAMP, s STRUCT<a: INT, b: DOUBLE>", MANY, UNLIMITED),
        ("k BIGINT, __laminae_report STRING", MANY, UNLIMITED),
        ("k BIGINT, name STRING", MANY, LIMITED),
        ("k BIGINT, b BINARY", MANY, LIMITED),
        ("k BIGINT, s STRUCT<a: STRING>", MANY, LIMITED),
        ("k BIGINT, names ARRAY<STRING>", FEW, LIMITED),
        ("k BIGINT, s STRUCT<m: MAP<STRING, INT>>", FEW, LIMITED),
    ],
)
def test_rows_of_one_width_are_not_measured_and_lists_come_in_small_batches(spark, columns, rows, size):
    own = spark.newSession()
    for name, value in DEFAULT_LIMITS.items():
        own.conf.set(name, value)
    limit_batches(own, own.createDataFrame([], columns).schema)
    assert (own.conf.get(ROWS), own.conf.get(BYTES)) == (rows, size)
    # Others in the same job do not lift what is set.
    limit_batches(own, own.createDataFrame([], "k BIGINT").schema)
    assert (own.conf.get(ROWS), own.conf.get(BYTES)) == (rows, size)
