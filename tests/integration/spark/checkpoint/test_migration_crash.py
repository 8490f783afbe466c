"""kill -9 of a migration, of its Python and its JVM: the old checkpoint stays byte for byte, the next run succeeds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from laminae.state import inspect_checkpoint, migrate_checkpoint
from tests.support.stateful import CHANGES, FIRST, METADATA, QUERIES, put, run, session_for, tree_hash
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOMENTS = ("copy offsets", "rewrite operator", "count the rows of the new")
EVERY_MOMENT = ("read the checkpoint", "plan the new query", *MOMENTS, "move it to the target")
WAIT_SECONDS = 240.0


@pytest.mark.parametrize(
    "moments",
    [MOMENTS, pytest.param((*EVERY_MOMENT, *MOMENTS, "rewrite operator"), marks=pytest.mark.chaos)],
    ids=["3 kills", "10 kills"],
)
def test_a_killed_migration_leaves_the_old_checkpoint_whole(
    spark: SparkSession, tmp_path: Path, moments: tuple[str, ...]
) -> None:
    query = QUERIES["aggregation"]
    session = session_for(spark, query)
    inbox, old, target = tmp_path / "in", tmp_path / "old", tmp_path / "new"
    put(inbox, "first", FIRST)
    run(query.build(inbox, METADATA), session, old)
    before = tree_hash(old)
    for number, moment in enumerate(moments):
        killed_at(moment, tmp_path / f"progress-{number}", inbox, old, target)
        assert tree_hash(old) == before
        assert not target.exists() or moment == EVERY_MOMENT[-1]
        if target.exists():
            target.rename(tmp_path / f"done-{number}")
    build = query.build(inbox, CHANGES["all at once"])
    migrated = migrate_checkpoint(str(old), str(target), build, spark=session)
    assert tree_hash(old) == before
    assert sum(one.rows for one in inspect_checkpoint(str(target), spark=session).families) == migrated.rows
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def killed_at(moment: str, progress: Path, inbox: Path, old: Path, target: Path) -> None:
    """Run a migration in a process group of its own and end all of it when it says that it has come so far."""
    command = [sys.executable, "-m", "tests.support.migrating", *map(str, (inbox, old, target, progress))]
    with progress.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        until(lambda: process.poll() is not None or moment in told(progress), WAIT_SECONDS, f"{moment} was not reached")
        assert moment in told(progress), progress.with_suffix(".log").read_text()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def told(progress: Path) -> str:
    return progress.read_text() if progress.exists() else ""
