"""Random views over random sources show what a Spark batch of the same text shows, after every round of records.

A seed that differs is printed with its query; `python -m tests.support.view_fuzz SEED VIEWS VIEW` runs it again, alone.
"""

from __future__ import annotations

import pytest

from tests.support.view_fuzz.run import Outcome, run_case

VIEWS = 20
SHORT, LONG = range(1, 4), range(1001, 1251)
JOINS, LONG_JOINS = range(3, 4), range(2001, 2101)


def agree(spark, directory, seeds: range, joins: bool = False) -> None:
    whole = Outcome()
    for seed in seeds:
        whole.add(run_case(spark, directory, seed, VIEWS // 2 if joins else VIEWS, joins=joins))
    print(whole.summary())  # noqa: T201  # what the run is worth: how many were compared, how many refused
    assert whole.stopped == []
    assert whole.differences == []
    assert len(whole.refused) < whole.compared / 2
    assert whole.compared > len(seeds) * VIEWS // 3


def test_random_views_agree_with_spark_batch(spark, tmp_path):
    agree(spark, tmp_path, SHORT)


def test_random_joins_agree_with_spark_batch(spark, tmp_path):
    agree(spark, tmp_path, JOINS, joins=True)


@pytest.mark.chaos
def test_random_joins_agree_with_spark_batch_for_long(spark, tmp_path):
    agree(spark, tmp_path, LONG_JOINS, joins=True)


@pytest.mark.chaos
def test_random_views_agree_with_spark_batch_for_long(spark, tmp_path):
    agree(spark, tmp_path, LONG)
