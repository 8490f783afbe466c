"""The settings of Kafka's client: secrets are looked up at use, also inside a sentence, and a missing one is named."""

from __future__ import annotations

import pytest

from laminae.errors import InvalidOption
from laminae.spark.sources.kafka.jars import AVRO, KAFKA
from laminae.spark.sources.kafka.settings import client_settings

SERVERS = ("kafka.bootstrap.servers", "here:9092")
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="${env:KAFKA_PW}";'


def test_only_options_of_the_client_go_to_it_with_their_secrets(monkeypatch):
    monkeypatch.setenv("KAFKA_PW", "hunter2")
    given = (SERVERS, ("kafka.sasl.jaas.config", JAAS), ("kafka.ssl.key.password", "${env:KAFKA_PW}"), ("topic", "t"))
    assert client_settings(given, "k") == {
        "kafka.bootstrap.servers": "here:9092",
        "kafka.sasl.jaas.config": JAAS.replace("${env:KAFKA_PW}", "hunter2"),
        "kafka.ssl.key.password": "hunter2",
    }


def test_a_secret_that_is_not_there_is_named_and_so_is_a_missing_address(monkeypatch):
    monkeypatch.delenv("KAFKA_PW", raising=False)
    with pytest.raises(InvalidOption, match=r"kafka\.sasl\.jaas\.config of k .* KAFKA_PW is not set"):
        client_settings((SERVERS, ("kafka.sasl.jaas.config", JAAS)), "k")
    with pytest.raises(InvalidOption, match=r"kafka\.bootstrap\.servers of k"):
        client_settings((), "k")


def test_coordinates_are_those_of_the_running_spark():
    assert KAFKA.coordinates("4.2.0") == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
    assert AVRO.coordinates("4.3.0") == "org.apache.spark:spark-avro_2.13:4.3.0"
