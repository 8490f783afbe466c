"""Whether state may be migrated: state.schema-evolution.enable, as an argument or as a setting of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "state.schema-evolution.enable"


def is_enabled(spark: SparkSession, given: bool | None, *, unless_said: bool) -> bool:
    """What is given, else the setting under its own name or as one of Spark's, else `unless_said`."""
    if given is not None:
        return given
    said = spark.conf.get(SETTING, None) or spark.conf.get(f"spark.laminae.{SETTING}", None)
    return unless_said if said is None else said.casefold() == "true"
