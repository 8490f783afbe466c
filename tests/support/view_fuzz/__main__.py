"""One case, or several, from the command line: SEED[-SEED] [VIEWS [ONLY [joins]]]; ONLY may be `all`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.integration.spark.conftest import SETTINGS
from tests.support.spark_sessions import prepare_jvm
from tests.support.view_fuzz.run import run_case


def main(seeds: str, views: str = "20", only: str = "all", shape: str = "") -> None:
    prepare_jvm()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    first, _, last = seeds.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            chosen = None if only == "all" else only
            found = run_case(spark, Path(directory), seed, int(views), chosen, shape == "joins")
        print(f"CASE {seed}: {time.monotonic() - began:.0f} s, {found.summary()}", flush=True)  # noqa: T201
        lines = [*found.differences, *found.stopped, *(f"refused: {each}" for each in found.refused)]
        for line in [*lines, *(f"unanswered: {each}" for each in found.unanswered)]:
            print("  ", line[:1200], flush=True)  # noqa: T201
    spark.stop()


main(*sys.argv[1:])
