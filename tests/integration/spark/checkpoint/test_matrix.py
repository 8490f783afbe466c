"""Every operator with every change and every refusal: each row of state, and what the migrated query then gives.

Cases of one query share its old checkpoint; a file of the second run is in its inbox only while a query reads it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from laminae.state import check_checkpoint, migrate_checkpoint
from laminae.state.rules import Rule
from tests.support.spark_state import PARTITION, state_of
from tests.support.stateful import CHANGES, FIRST, METADATA, QUERIES, SECOND, put, run, session_for, tree_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.spark_state import Part
    from tests.support.stateful import Query

# Operators by what of their state the schema is in. Each such place meets each change, its operators in turn;
# `make chaos` runs every operator with every change.
PLACES = {
    "values": ("aggregation", "windows", "session windows", "aggregation on HDFS", "aggregation, checkpoint format 2"),
    "keys": ("duplicates", "duplicates within watermark", "duplicates on HDFS"),
    "values by number": ("join format 2", "join format 3"),
    "several operators": ("chained",),
    "values, lists and maps": ("transformWithState", "transformWithStateInPandas"),
}
REFUSALS = {
    "removed": (METADATA.replace(", deviceType STRING", ""), Rule.FIELD_REMOVED),
    "renamed": (METADATA.replace("deviceType", "device"), Rule.FIELD_RENAMED),
    "retyped": (METADATA.replace("deviceType STRING", "deviceType BIGINT"), Rule.TYPE_CHANGED),
    "removed inside": (METADATA.replace(", zone: INT", ""), Rule.FIELD_REMOVED),
}


@dataclass(frozen=True)
class Stopped:
    """A query that ran over the first file and was stopped."""

    query: Query
    spark: SparkSession
    place: Path

    @property
    def inbox(self) -> Path:
        return self.place / "in"

    @property
    def checkpoint(self) -> Path:
        return self.place / "old"

    @cached_property
    def state(self) -> dict[str, Part]:
        return state_of(self.spark, self.checkpoint)

    @contextmanager
    def second_file(self) -> Iterator[None]:
        put(self.inbox, "second", SECOND)
        try:
            yield
        finally:
            (self.inbox / "second.json").unlink()


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Stopped]:
    made: dict[str, Stopped] = {}

    def found(name: str) -> Stopped:
        if name not in made:
            query = QUERIES[name]
            one = made[name] = Stopped(query, session_for(spark, query), tmp_path_factory.mktemp("matrix"))
            put(one.inbox, "first", FIRST)
            run(query.build(one.inbox, METADATA), one.spark, one.checkpoint)
        return made[name]

    return found


def cases(changes: dict[str, object]) -> list[object]:
    selected = {
        (queries[number % len(queries)], change) for queries in PLACES.values() for number, change in enumerate(changes)
    }
    return [
        pytest.param(query, change, marks=() if (query, change) in selected else pytest.mark.chaos)
        for query in QUERIES
        for change in changes
    ]


def test_every_operator_has_its_place() -> None:
    assert sorted(name for queries in PLACES.values() for name in queries) == sorted(QUERIES)


@pytest.mark.parametrize(("name", "change"), cases({**CHANGES}))
def test_a_migrated_query_gives_what_one_with_the_new_schema_gives(
    stopped: Callable[[str], Stopped], tmp_path: Path, name: str, change: str
) -> None:
    old, target, reference = stopped(name), tmp_path / "new", tmp_path / "reference"
    new = old.query.build(old.inbox, CHANGES[change])
    run(new, old.spark, reference)
    before = tree_hash(old.checkpoint)
    migrated = migrate_checkpoint(str(old.checkpoint), str(target), new, spark=old.spark)
    assert migrated.rows > 0
    compare_state(old, state_of(old.spark, target), state_of(old.spark, reference))
    with old.second_file():
        found = run(new, old.spark, target)
        assert found == run(new, old.spark, reference)
    assert any(found)
    assert tree_hash(old.checkpoint) == before


def compare_state(old: Stopped, migrated: dict[str, Part], reference: dict[str, Part]) -> None:
    """Every row is the old one under the new schema, and lies where Spark puts such a row."""
    assert migrated.keys() == old.state.keys() == reference.keys()
    assert any(part.rows for part in migrated.values())
    for name, part in migrated.items():
        assert part.schema == reference[name].schema
        moved = (PARTITION,)
        assert part.texts(without=moved) == old.state[name].under(part.schema).texts(without=moved), name
        if not old.query.once:
            # Timers and TTL are of the clock; everything else is as if it had been so from the start.
            assert part.texts() == reference[name].texts(), name


@pytest.mark.parametrize(("name", "change"), cases({**REFUSALS}))
def test_what_cannot_be_carried_over_is_refused_for_every_operator(
    stopped: Callable[[str], Stopped], name: str, change: str
) -> None:
    old, (metadata, rule) = stopped(name), REFUSALS[change]
    before = tree_hash(old.checkpoint)
    report = check_checkpoint(str(old.checkpoint), old.query.build(old.inbox, metadata), spark=old.spark)
    assert {reason.rule for reason in report.reasons} == {rule}
    assert all(reason.path and reason.remedy for reason in report.reasons)
    assert tree_hash(old.checkpoint) == before
