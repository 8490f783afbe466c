"""What Spark lets through and corrupts: each shown to corrupt without laminae, and to be caught by a check."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.errors import StateRefused
from laminae.state import check_checkpoint, migrate_checkpoint
from laminae.state.rules import Rule
from tests.support.stateful import Query, put, run, session_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from tests.support.stateful import Build

ROW = {"id": 1, "a": 1, "b": 1000, "m": {"city": "Paris", "country": "FR"}}
NOTHING = {"id": 1, "a": 0, "b": 0, "m": None}
CITY, SWAPPED = "city: STRING, country: STRING", "country: STRING, city: STRING"


def first() -> tuple[Column, ...]:
    return (F.first("m", ignorenulls=True).alias("m"),)


def collected() -> tuple[Column, ...]:
    return (F.collect_list("m").alias("m"),)


def sums(*names: str) -> Callable[[], tuple[Column, ...]]:
    return lambda: tuple(F.sum(name).alias(name) for name in names)


@dataclass(frozen=True)
class Case:
    """A query before and after; `corrupted` is what Spark itself then answers, `right` what it should."""

    old: tuple[str, Callable[[], tuple[Column, ...]]]
    new: tuple[str, Callable[[], tuple[Column, ...]]]
    corrupted: object
    right: object
    rule: Rule | None


RIGHT, WRONG = {"city": "Paris", "country": "FR"}, {"city": "FR", "country": "Paris"}
TOWN = "town: STRING, country: STRING"
RENAMED = {"town": "Paris", "country": "FR"}
AB, BA = sums("a", "b"), sums("b", "a")
CASES = {
    "swap": Case((CITY, first), (SWAPPED, first), WRONG, RIGHT, None),
    "rename": Case((CITY, first), (TOWN, first), RENAMED, None, Rule.FIELD_RENAMED),
    "collected": Case((CITY, collected), (SWAPPED, collected), [WRONG], [RIGHT], Rule.BUFFER_OPAQUE),
    "shifted sums": Case((CITY, AB), (CITY, BA), {"a": 1000, "b": 1}, {"a": 1, "b": 1000}, Rule.AGGREGATES_UNKNOWN),
}


def build(inbox: Path, side: tuple[str, Callable[[], tuple[Column, ...]]]) -> Build:
    struct, aggregates = side

    def make(spark: SparkSession, inbox: Path, struct: str) -> DataFrame:
        schema = f"id INT, a BIGINT, b BIGINT, m STRUCT<{struct}>"
        return spark.readStream.schema(schema).json(str(inbox)).groupBy("id").agg(*aggregates())

    return Query(make).build(inbox, struct)


def answer(batches: list[list[str]]) -> object:
    """What the last batch says of the one key."""
    found = json.loads(batches[-1][0])
    found.pop("id")
    return found.get("m", found)


@pytest.mark.parametrize("name", CASES)
def test_what_spark_corrupts_is_caught(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    session = session_for(spark, Query(lambda *_: None))  # type: ignore[arg-type,return-value]  # settings alone
    inbox, old = tmp_path / "in", tmp_path / "old"
    put(inbox, "first", [ROW])
    run(build(inbox, case.old), session, old)
    new, target = build(inbox, case.new), tmp_path / "new"
    report = check_checkpoint(str(old), new, spark=session)
    assert report.kind != "compatible_as_is"
    assert [reason.rule for reason in report.reasons] == ([] if case.rule is None else [case.rule])
    if case.rule is not None:
        with pytest.raises(StateRefused):
            migrate_checkpoint(str(old), str(target), new, spark=session)
    if case.right is not None:
        migrate_checkpoint(str(old), str(target), new, spark=session, from_build=build(inbox, case.old))
    put(inbox, "second", [NOTHING])
    shutil.copytree(old, tmp_path / "without laminae")
    assert answer(run(new, session, tmp_path / "without laminae")) == case.corrupted
    if case.right is not None:
        assert answer(run(new, session, target)) == case.right
