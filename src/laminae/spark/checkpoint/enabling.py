"""Whether state may be migrated: state.schema-evolution.enable, as an argument, or of the session, or of a home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog import open_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "state.schema-evolution.enable"


def is_enabled(spark: SparkSession, given: bool | None, home: str | None, *, unless_said: bool) -> bool:
    """What is given; else the session's setting, by its own name or as one of Spark's; else what was SET in `home`."""
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
