"""The Spark session of a check or a migration: the one given, else the active one, else one of our own."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from laminae.spark.session import spark_session

DEFAULT_PYTHON = "python3"


def session_of(given: SparkSession | None) -> SparkSession:
    found = given or SparkSession.getActiveSession() or spark_session("checkpoint://", (), {})
    _run_workers_here(found)
    return found


def _run_workers_here(spark: SparkSession) -> None:
    """Spark starts workers with `python3` unless it was told otherwise, which may be one that has no laminae."""
    context = spark.sparkContext
    if context.pythonExec == DEFAULT_PYTHON and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


def started_session(settings: dict[str, str]) -> SparkSession:
    """A session for a command, with these settings of Spark's."""
    return spark_session("checkpoint://", (), settings)


def own_session(spark: SparkSession, settings: dict[str, str]) -> SparkSession:
    """A copy of the session with settings of its own; those of the given one stay as they are."""
    copied = SparkSession(spark.sparkContext, jsparkSession=spark._jsparkSession.cloneSession())
    for name, value in settings.items():
        copied.conf.set(name, value)
    return copied
