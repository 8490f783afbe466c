"""Whether Spark has a connector on its class path, and the exact coordinates of what is missing where it has not.

Spark looks a connector up by its short name; so does this, so what passes here is what Spark will load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from laminae.errors import NotAvailable
from laminae.spark.java import java_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

# Spark 4 is built for this Scala alone.
SCALA = "2.13"


@dataclass(frozen=True, slots=True)
class Connector:
    """One that is not part of Spark itself: the name it is looked up by, and its artifact.

    `needs` are classes of libraries that it loads only when it reads: a jar alone brings none of them.
    """

    name: str
    artifact: str
    needs: tuple[str, ...] = ()

    def coordinates(self, version: str) -> str:
        """As `spark.jars.packages` takes them, for this version of Spark."""
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
    """How a session gets what it lacks."""
    return (
        f"Start it with connect(config={{'spark.jars.packages': '{','.join(coordinates)}'}}), or give the "
        "files with connect(jars=[...]); a session of your own needs the same setting."
    )


def is_loaded(spark: SparkSession, connector: Connector) -> bool:
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        # Under Spark Connect the class path is the server's, which says so itself when it is asked to read.
        return True
    session: Any = getattr(spark, "_jsparkSession")  # noqa: B009  # it is not part of the typed session
    look_up = java_class(jvm, "org.apache.spark.sql.execution.datasources.DataSource").lookupDataSource
    try:
        look_up(connector.name, session.sessionState().conf())
    except (PySparkException, Py4JError):
        # Not found, or found without a library that it needs: neither can be used.
        return False
    return all(java_class(jvm, "org.apache.spark.util.Utils").classIsLoadable(name) for name in connector.needs)
