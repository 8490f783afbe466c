"""A Kafka broker of one node without ZooKeeper (KRaft), on the loopback address alone."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.services.jars import java_command
from tests.services.processes import free_port, service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "127.0.0.1"
FORMAT_SECONDS, PROBE_SECONDS = 60.0, 2.0
# Kafka wants sixteen bytes in URL-safe base64 without padding.
CLUSTER_ID = base64.urlsafe_b64encode(b"laminae services").decode().rstrip("=")
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    # There is one node, and its own topics cannot have three replicas.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}


@contextmanager
def running_kafka(directory: Path, port: int | None = None) -> Iterator[str]:
    """The address of a broker that answers. One used before, with its port, comes back with its topics."""
    directory.mkdir(parents=True, exist_ok=True)
    port, controller = port or free_port(), free_port()
    properties = directory / "server.properties"
    properties.write_text(_properties(directory, port, controller))
    if not (directory / "data" / "meta.properties").exists():
        _format(properties)
    command = java_command("kafka", "kafka.Kafka", str(properties))
    with service("kafka", command, os.environ, directory, lambda: _answers(port)):
        yield f"{HOST}:{port}"


def _properties(directory: Path, port: int, controller: int) -> str:
    settings = {
        **SETTINGS,
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "log.dirs": str(directory / "data"),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _format(properties: Path) -> None:
    command = java_command("kafka", "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
    done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_SECONDS, check=False)
    assert done.returncode == 0, f"Kafka's storage was not formatted: {done.stdout}{done.stderr}"


def _answers(port: int) -> bool:
    """Whether the broker tells a client which brokers there are: its port is open before that."""
    try:
        socket.create_connection((HOST, port), PROBE_SECONDS).close()
    except OSError:
        return False
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        known = AdminClient({"bootstrap.servers": f"{HOST}:{port}"}).list_topics(timeout=PROBE_SECONDS)
    except KafkaException:
        return False
    return bool(known.brokers)
