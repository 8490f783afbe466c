"""Checks whether Spark has a connector on its class path, and gives the exact coordinates of what is missing.

Spark looks a connector up by its short name. So does this module, so it accepts exactly what Spark can load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.errors import NotAvailable
from laminae.spark.catalyst.jvm import has_data_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

# Spark 4 is built for this Scala version only.
SCALA = "2.13"


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector that is not part of Spark itself: the name by which Spark looks it up, and its Maven artifact.

    `needs` are classes of libraries that it loads only when it reads: its jar alone does not contain them.
    """

    name: str
    artifact: str
    needs: tuple[str, ...] = ()

    def coordinates(self, version: str) -> str:
        """The Maven coordinates for `spark.jars.packages`, for this version of Spark."""
        return f"org.apache.spark:{self.artifact}_{SCALA}:{version}"


KAFKA = Connector(
    "kafka",
    "spark-sql-kafka-0-10",
    (
        "org.apache.kafka.clients.consumer.KafkaConsumer",
        "org.apache.spark.kafka010.KafkaConfigUpdater",
        "org.apache.commons.pool2.impl.GenericKeyedObjectPool",
    ),
)
AVRO = Connector("avro", "spark-avro")


def require(spark: SparkSession, owner: str, *connectors: Connector) -> None:
    """Raises `NotAvailable` with the coordinates of every connector that the session cannot load."""
    missing = [connector.coordinates(spark.version) for connector in connectors if not is_loaded(spark, connector)]
    if missing:
        raise NotAvailable(
            feature=f"What {owner} needs",
            problem=f"Spark {spark.version} has no {' and no '.join(missing)} on its class path",
            advice=remedy(missing),
        )


def remedy(coordinates: Sequence[str]) -> str:
    """The advice on how to start a session with the missing packages."""
    return (
        f"Start it with connect(config={{'spark.jars.packages': '{','.join(coordinates)}'}}), or give the "
        "files with connect(jars=[...]); a session of your own needs the same setting."
    )


def is_loaded(spark: SparkSession, connector: Connector) -> bool:
    return has_data_source(spark, connector.name, connector.needs)
