"""Check which of the connectors that are not part of Spark a session can load, and what to do if it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from laminae.errors import NotAvailable
from laminae.spark.catalyst.session import spark_session
from laminae.spark.sources.kafka.jars import AVRO, KAFKA, is_loaded, remedy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS = ((KAFKA, "connector kafka"), (AVRO, "format avro of connector kafka"))


@dataclass(frozen=True, slots=True)
class Looked:
    """The artifact of a connector, what needs it, and the remedy if it does not load (empty if it does)."""

    artifact: str
    need: str
    advice: str = ""


def look(spark: SparkSession) -> tuple[Looked, ...]:
    """Look up each connector in the same way as Spark does when it reads."""
    results = []
    for connector, need in NEEDS:
        advice = "" if is_loaded(spark, connector) else remedy([connector.coordinates(spark.version)])
        results.append(Looked(connector.artifact, need, advice))
    return tuple(results)


def look_anew() -> tuple[Looked, ...]:
    """Like `look`, in a temporary session with the settings that `laminae run` would get here."""
    try:
        session = spark_session(".", (), {})
    except PySparkException as problem:
        advice = "Check its output for the cause, often its settings (spark-defaults.conf) or its memory."
        raise NotAvailable(feature="Spark", problem=f"it does not start: {problem}", advice=advice) from None
    try:
        return look(session)
    finally:
        session.stop()
