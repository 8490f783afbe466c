"""The Spark session laminae runs in: the one it is given, or one it starts with settings that suit small epochs."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from laminae.spark.java import java_class

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Measured on a local home: 200-250 ms of Spark's own bookkeeping an epoch become 70-90 ms without .crc files and
# without a forked chmod. Both are for local files only, so they are set in a session of our own and nowhere else.
# FileSystem.getLocal casts to the file system with checksums; state in RocksDB is loaded through it, and so are RDDs
# of files. Queries of the same application that are not ours must get what they expect, and Hadoop keeps one file
# system for a scheme whatever the settings are: ours is made without its cache.
LOCAL_SETTINGS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
PRUNING = "org.apache.spark.sql.catalyst.optimizer.PruneFilters"
CODE_GENERATOR = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Off by default in Spark, where TIME is new: Avro and people have columns of it.
    "spark.sql.timeType.enabled": "true",
    "spark.log.level": "ERROR",
}
# Spark talks with its Python workers by TCP and does not tell the kernel to send small packets at once: each of them
# waits for an acknowledgement that the other side delays by 40 ms. 215 ms of a small epoch of a view become 150.
BY_SOCKET_FILE = "spark.python.unix.domain.socket.enabled"
SOCKET_DIRECTORY = "spark.python.unix.domain.socket.dir"


def spark_session(home: str, jars: Sequence[str], config: Mapping[str, str]) -> SparkSession:
    """Start a session, `local[*]` unless `config` names another master. Python workers run this interpreter.

    For a home on local files it is one beside the application's own, which stays as Spark makes it.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**SETTINGS, **config}
    if jars:
        settings["spark.jars"] = ",".join(jars)
    master = settings.pop("spark.master", "local[*]")
    if master.startswith("local"):
        settings.setdefault("spark.driver.bindAddress", "127.0.0.1")
        settings.setdefault("spark.driver.host", "127.0.0.1")
        # Elsewhere workers run on machines that do not have the directory.
        if hasattr(socket, "AF_UNIX"):
            settings = {**by_socket_file(), **settings}
    builder = SparkSession.builder.master(master).appName("laminae")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    _keep_quiet_about_long_code(session)
    return session if "://" in home else _for_local_files(session, config)


@cache
def by_socket_file() -> dict[str, str]:
    """Settings for sockets in a directory that no other user can enter: there is no secret beside. It goes at exit."""
    place = tempfile.mkdtemp(prefix="laminae-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return {BY_SOCKET_FILE: "true", SOCKET_DIRECTORY: place}


def settle_epochs(session: SparkSession) -> None:
    """Settings of every session that plans epochs.

    Spark would take away the read below a filter that lets nothing through, and with it dead letters and counts. And
    what it infers about values takes time and memory exponential in the columns that a projection both names and tests.
    """
    session.conf.set("spark.sql.optimizer.excludedRules", PRUNING)
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")


def beside(session: SparkSession) -> SparkSession:
    """One like it, whose settings are its own."""
    java: Any = getattr(session, "_jsparkSession")  # noqa: B009  # it is not part of the typed session
    return SparkSession(session.sparkContext, jsparkSession=java.cloneSession())


def _for_local_files(session: SparkSession, config: Mapping[str, str]) -> SparkSession:
    own = beside(session)
    for name, value in LOCAL_SETTINGS.items():
        if name not in config:
            own.conf.set(name, value)
    return own


def _keep_quiet_about_long_code(session: SparkSession) -> None:
    """An epoch across many versions may need more code than a Java method holds.

    Spark then runs it without compiling it, and prints a thousand lines of that code as an error.
    """
    jvm: Any = getattr(session, "_jvm")  # noqa: B009  # it is not part of the typed session
    off = java_class(jvm, "org.apache.logging.log4j.Level").OFF
    java_class(jvm, "org.apache.logging.log4j.core.config.Configurator").setLevel(CODE_GENERATOR, off)
