"""The Spark session of a check or a migration: the one given, else the active one, else one of our own."""

from __future__ import annotations

from pyspark.sql import SparkSession

from laminae.spark.session import spark_session


def session_of(given: SparkSession | None) -> SparkSession:
    if given is not None:
        return given
    return SparkSession.getActiveSession() or spark_session("checkpoint://", (), {})


def started_session(settings: dict[str, str]) -> SparkSession:
    """A session for a command, with these settings of Spark's."""
    return spark_session("checkpoint://", (), settings)


def own_session(spark: SparkSession, settings: dict[str, str]) -> SparkSession:
    """A copy of the session with settings of its own; those of the given one stay as they are."""
    copied = SparkSession(spark.sparkContext, jsparkSession=spark._jsparkSession.cloneSession())
    for name, value in settings.items():
        copied.conf.set(name, value)
    return copied
