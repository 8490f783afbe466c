"""`laminae doctor` on a real Spark: what is on its class path loads, what is not is named with its coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae.spark.driver import connectors
from laminae.spark.sources.kafka import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.services
@pytest.mark.usefixtures("connector_jars")
def test_connectors_on_the_class_path_load(spark: SparkSession) -> None:
    found = connectors.look(spark)
    assert [(each.artifact, each.advice) for each in found] == [("spark-sql-kafka-0-10", ""), ("spark-avro", "")]


def test_a_connector_that_is_not_there_is_named_with_its_coordinates(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = jars.Connector("kafkaesque", "spark-sql-kafka-0-10")
    monkeypatch.setattr(connectors, "NEEDS", ((absent, "connector kafka"),))
    (kafka,) = connectors.look(spark)
    assert f"'org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}'" in kafka.advice


def test_a_connector_without_a_library_that_it_needs_does_not_load(spark: SparkSession) -> None:
    bare = jars.Connector("json", "spark-sql", ("org.apache.kafka.clients.NoSuchClient",))
    assert not jars.is_loaded(spark, bare)
    assert jars.is_loaded(spark, jars.Connector("json", "spark-sql", ("java.lang.String",)))
