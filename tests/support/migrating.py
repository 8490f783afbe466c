"""A process that migrates a checkpoint, for tests that kill it: `-m tests.support.migrating IN OLD NEW PROGRESS`.

Each step is a line in the file PROGRESS, so that the moment of a kill can be chosen.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from laminae.spark.catalyst.session import spark_session
from laminae.state import migrate_checkpoint
from tests.support.stateful import CHANGES, QUERIES, ROCKSDB

SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.master": "local[2]", **dict(ROCKSDB)}


def main(inbox: str, old: str, new: str, progress: str) -> None:
    def tell(step: str, done: int, total: int) -> None:
        with Path(progress).open("a", encoding="utf-8") as file:
            file.write(f"{step}\n")
            file.flush()
            os.fsync(file.fileno())

    # As in an application that also has a home on local files: its session is for the home alone.
    spark_session(str(Path(new).parent / "home"), (), SETTINGS)
    spark = SparkSession.builder.getOrCreate()
    build = QUERIES["aggregation"].build(Path(inbox), CHANGES["all at once"])
    migrate_checkpoint(old, new, build, spark=spark, on_step=tell)
    tell("done", 1, 1)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
