"""A driver that a test can kill: `python -m tests.support.driver HOME [--catalog URL] [--config NAME=VALUE]...`.

It runs the home until it is told to stop (SIGTERM), as `laminae run` does, on a Spark of its own. `--kill-at POINT`
ends it with kill -9 at a named point of an epoch, which no signal from outside could hit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import laminae as lm
from laminae.engine import faults

if TYPE_CHECKING:
    from laminae.spark.driver.pipeline import Pipeline

TRIGGER = "50 milliseconds"
LOOK_SECONDS = 0.1
RUNS = "runs: "
CONFIG = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    # A life of some seconds never earns back what the optimising compiler costs on two cores.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home")
    parser.add_argument("--catalog")
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--kill-at")
    given = parser.parse_args()
    if given.kill_at:
        faults.install(given.kill_at, lambda: os.kill(os.getpid(), signal.SIGKILL))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    config = CONFIG | dict(setting.split("=", 1) for setting in given.config)
    with lm.connect(given.home, catalog=given.catalog, config=config) as db:
        pipeline = db.start(TRIGGER)
        try:
            report(pipeline)
            while pipeline.is_running() and not stop.wait(LOOK_SECONDS):
                pass
            pipeline.raise_problems()
            report(pipeline)
        finally:
            pipeline.stop()


def report(pipeline: Pipeline) -> None:
    """Spark's own ids of the runs, for whoever wants to know whether a query was restarted."""
    runs = {status.source: status.run_id for status in pipeline.status()}
    sys.stdout.write(f"{RUNS}{json.dumps(runs)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
