"""A stream under steady input takes changes of every kind from another process: no restart, each row exactly once."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

import laminae as lm
from tests.support.live_changes import (
    SOURCE,
    VERSIONS,
    assert_delivered_once,
    change_and_insert,
    project,
    schemas_of,
)

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.live_changes import Stamped


def change_in_another_process(home: str, answer: Connection) -> None:
    answer.send(change_and_insert(home))
    answer.close()


def sent_by_another_process(home: str) -> list[Stamped]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=change_in_another_process, args=(home, sender))
    process.start()
    sender.close()
    try:
        with receiver:
            return receiver.recv()
    finally:
        process.join()
        process.close()


def test_twenty_changes_from_another_process_lose_no_row_and_restart_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    home, out = str(tmp_path / "home"), tmp_path / "out"
    with lm.connect(home, spark=spark) as db:
        db.sql(SOURCE)
        db.sql(f"CREATE SINK k FROM orders WITH (connector = 'files', format = 'json', path = '{out}')")
        pipeline = db.start("50 milliseconds")
        try:
            pipeline.process_all_available()
            (before,) = pipeline.status()
            sent = sent_by_another_process(home)
            pipeline.process_all_available()
            (after,) = pipeline.status()
        finally:
            pipeline.stop()
        assert (after.run_id, after.version) == (before.run_id, VERSIONS)
        assert (after.rows, after.dead_letters) == (len(sent), 0)
        schemas = schemas_of(home)
        expected = {row["id"]: row for version, row in sent for row in project(schemas, version, VERSIONS, row)}
        assert {row["id"]: row for row in db.sql("SELECT * FROM orders").arrow().to_pylist()} == expected
    assert_delivered_once(out, sent, home)
