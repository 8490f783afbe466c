"""The Spark session of a check or a migration, and the setting that allows one (state.schema-evolution.enable)."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from laminae.catalog import open_catalog
from laminae.spark.catalyst.session import spark_session
from laminae.spark.catalyst.session_settings import cloned
from laminae.spark.catalyst.spark_version import supported_session

DEFAULT_PYTHON = "python3"
SETTING = "state.schema-evolution.enable"


def session_of(given: SparkSession | None) -> SparkSession:
    """The given session, else the active one, else a new one."""
    known = given or SparkSession.getActiveSession()
    session = spark_session("checkpoint://", (), {}) if known is None else supported_session(known)
    _run_workers_here(session)
    return session


def _run_workers_here(spark: SparkSession) -> None:
    """Start workers with this interpreter: Spark's default, `python3`, may be one without laminae installed."""
    context = spark.sparkContext
    if context.pythonExec == DEFAULT_PYTHON and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


def started_session(settings: dict[str, str]) -> SparkSession:
    """A session for a CLI command, with these Spark settings."""
    return spark_session("checkpoint://", (), settings)


def own_session(spark: SparkSession, settings: dict[str, str]) -> SparkSession:
    """A clone of the session with these settings; the given session is not changed."""
    copied = cloned(spark)
    for name, value in settings.items():
        copied.conf.set(name, value)
    return copied


def is_enabled(spark: SparkSession, given: bool | None, home: str | None, *, unless_said: bool) -> bool:
    """The argument; else the session setting, with or without prefix `spark.laminae.`; else the one SET in `home`."""
    if given is not None:
        return given
    said = spark.conf.get(SETTING, None) or spark.conf.get(f"spark.laminae.{SETTING}", None) or _set_in(home)
    return unless_said if said is None else said.casefold() == "true"


def _set_in(home: str | None) -> str | None:
    if home is None:
        return None
    catalog = open_catalog(str(home))
    try:
        return catalog.settings().get(SETTING)
    finally:
        catalog.close()
