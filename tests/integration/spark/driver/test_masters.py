"""The master and the settings that somebody gave to Spark are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.spark.catalyst.session import spark_session
from laminae.spark.catalyst.session_settings import meaning_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = """
import json, sys
from laminae.spark.catalyst.session import spark_session
names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.ui.enabled")
session = spark_session(sys.argv[1], (), json.loads(sys.argv[2]))
found = {name: session.conf.get(name) for name in names}
print("FOUND", json.dumps({"master": session.sparkContext.master, **found}))
"""


def test_spark_submit_keeps_its_master_and_settings_and_config_goes_before_both(tmp_path: Path) -> None:
    application = tmp_path / "application.py"
    application.write_text(APPLICATION)
    submit = Path(sys.executable).with_name("spark-submit")
    settings = ["--conf", "spark.sql.session.timeZone=Asia/Tokyo", "--conf", "spark.sql.ansi.enabled=true"]
    command = [str(submit), "--master", "local[1]", "--driver-memory", "512m", *settings, str(application)]
    config = {"spark.sql.ansi.enabled": "false"}
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    done = subprocess.run(  # a program of this test's own environment
        [*command, str(tmp_path / "home"), json.dumps(config)],
        env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND")] or [done.stderr]
    assert json.loads(line.removeprefix("FOUND")) == {
        "master": "local[1]",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.ansi.enabled": "false",
        "spark.ui.enabled": "false",
    }


def test_an_application_that_runs_keeps_its_master_and_its_session_stays_as_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    before, everything = meaning_of(spark), dict(spark.conf.getAll)
    config = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.master": "local[7]"}
    session = spark_session(str(tmp_path / "home"), (), config)
    assert session.sparkContext.master == "local[2]"
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert meaning_of(spark) == before
    assert dict(spark.conf.getAll) == everything
