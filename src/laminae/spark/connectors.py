"""The connectors that Spark does not bring along: which of them a session can load, and what it lacks otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from laminae.errors import NotAvailable
from laminae.spark.kafka.jars import AVRO, KAFKA, is_loaded, remedy
from laminae.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS = ((KAFKA, "connector kafka"), (AVRO, "format avro of connector kafka"))


@dataclass(frozen=True, slots=True)
class Looked:
    """A connector by the name of its artifact, what needs it, and what to do where it does not load."""

    artifact: str
    need: str
    advice: str = ""


def look(spark: SparkSession) -> tuple[Looked, ...]:
    """Each is looked up as Spark does it when it reads."""
    found = []
    for connector, need in NEEDS:
        advice = "" if is_loaded(spark, connector) else remedy([connector.coordinates(spark.version)])
        found.append(Looked(connector.artifact, need, advice))
    return tuple(found)


def look_anew() -> tuple[Looked, ...]:
    """The same in a session that is started for it with the settings that Spark finds here, as `laminae run` does."""
    try:
        session = spark_session(".", (), {})
    except PySparkException as problem:
        advice = "Look at what it has printed: its settings (spark-defaults.conf), or its memory."
        raise NotAvailable(feature="Spark", problem=f"it does not start: {problem}", advice=advice) from None
    try:
        return look(session)
    finally:
        session.stop()
