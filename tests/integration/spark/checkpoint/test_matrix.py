"""Every operator with every change: the migrated query gives what one with the new schema from the start gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae.state import check_checkpoint, migrate_checkpoint
from tests.support.stateful import CHANGES, FIRST, METADATA, QUERIES, SECOND, put, run, session_for, tree_hash

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# Each kind of operator and each change; an aggregation is in test_seed_001, `make chaos` runs them all.
SELECTED = {
    ("windows", "nested"),
    ("duplicates", "added in the middle"),
    ("session windows", "reordered"),
    ("join format 3", "added at the start"),
    ("chained", "added at the end"),
    ("transformWithState", "all at once"),
    ("aggregation on HDFS", "all at once"),
    ("aggregation, checkpoint format 2", "unchanged"),
}
EVERY = [
    pytest.param(query, change, marks=() if (query, change) in SELECTED else pytest.mark.chaos, id=f"{query}, {change}")
    for query in QUERIES
    for change in CHANGES
]


@pytest.mark.parametrize(("name", "change"), EVERY)
def test_a_migrated_query_gives_what_one_with_the_new_schema_gives(
    spark: SparkSession, tmp_path: Path, name: str, change: str
) -> None:
    query, new = QUERIES[name], CHANGES[change]
    session = session_for(spark, query)
    inbox, old, target, reference = (tmp_path / name for name in ("in", "old", "new", "from the start"))
    put(inbox, "first", FIRST)
    run(query.build(inbox, METADATA), session, old)
    run(query.build(inbox, new), session, reference)
    before = tree_hash(old)
    report = check_checkpoint(str(old), query.build(inbox, new), spark=session)
    assert report.reasons == ()
    assert report.rows > 0
    migrated = migrate_checkpoint(str(old), str(target), query.build(inbox, new), spark=session)
    assert migrated.rows == report.rows
    assert tree_hash(old) == before
    put(inbox, "second", SECOND)
    found = run(query.build(inbox, new), session, target)
    assert found == run(query.build(inbox, new), session, reference)
    assert any(found)
