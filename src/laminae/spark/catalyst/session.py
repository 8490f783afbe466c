"""The Spark session laminae runs in: a clone of the active one, or one started with settings that suit small epochs."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
from functools import cache
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from laminae.spark.catalyst.jvm import java_class
from laminae.spark.catalyst.jvm_output import is_verbose, start_quiet_jvm
from laminae.spark.catalyst.session_settings import cloned
from laminae.spark.catalyst.spark_version import require_supported, supported_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Measured on a local home: without .crc files and without a forked chmod, Spark's own bookkeeping takes 70-90 ms per
# epoch instead of 200-250 ms. Both apply to local files only, so they are set only in laminae's own session.
# FileSystem.getLocal casts to the file system with checksums; RocksDB state and RDDs of files are loaded through it.
# Other queries of the same application must get the file system that they expect, and Hadoop caches one file system per
# scheme regardless of settings: laminae's is created with that cache disabled.
LOCAL_SETTINGS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
PRUNING = "org.apache.spark.sql.catalyst.optimizer.PruneFilters"
CODE_GENERATOR = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator"
# Avro allocates as much as a length in the bytes says before it looks for the bytes: one corrupt record of a few bytes
# asks for 2 GB, and Spark ends the JVM when the heap is full.
AVRO_LIMITS = {
    "org.apache.avro.limits.bytes.maxLength": 64 << 20,
    "org.apache.avro.limits.string.maxLength": 64 << 20,
    "org.apache.avro.limits.collectionItems.maxLength": 16 << 20,
}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Off by default in Spark, where TIME is new. Avro schemas and users have columns of this type.
    "spark.sql.timeType.enabled": "true",
    "spark.log.level": "ERROR",
}
# Spark talks to its Python workers over TCP without TCP_NODELAY: each small packet waits for an acknowledgement that
# the other side delays by 40 ms. With Unix domain sockets a small epoch of a view takes 150 ms instead of 215 ms.
BY_SOCKET_FILE = "spark.python.unix.domain.socket.enabled"
SOCKET_DIRECTORY = "spark.python.unix.domain.socket.dir"


def spark_session(home: str, jars: Sequence[str], config: Mapping[str, str]) -> SparkSession:
    """A session of the running Spark application, or of one started here. Python workers use this interpreter.

    User settings take precedence: the master and settings of `config`, else those of spark-submit, the environment or
    spark-defaults.conf; `local[*]` if no master is set at all. For a home on local files the result is a clone of the
    application's session, which is not changed.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_running = SparkContext._active_spark_context is not None
    session = supported_session(_like_the_active(config) if is_running else _started(home, jars, config))
    _keep_quiet_about_long_code(session)
    limit_avro_lengths(session)
    return session if "://" in home else _for_local_files(session, config)


def _like_the_active(config: Mapping[str, str]) -> SparkSession:
    """A clone of the active session. That session belongs to the user: only the clone gets laminae's settings."""
    session = cloned(SparkSession.builder.getOrCreate())
    for name, value in {**SETTINGS, **config}.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def _started(home: str, jars: Sequence[str], config: Mapping[str, str]) -> SparkSession:
    require_supported(pyspark.__version__)
    chosen = {**config, "spark.jars": ",".join(jars)} if jars else dict(config)
    if not is_verbose(config):
        start_quiet_jvm(home, chosen)
    # The settings of spark-submit can be read only once the JVM runs; JVM options take effect only at its start.
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(chosen.items())))
    before = SparkConf()
    master = chosen.pop("spark.master", None) or before.get("spark.master", "local[*]") or "local[*]"
    settings = dict(SETTINGS)
    if not is_verbose(config):
        settings["spark.ui.showConsoleProgress"] = "false"
    if master.startswith("local"):
        settings.update({"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"})
        # On a cluster, workers run on machines that do not have the socket directory.
        if hasattr(socket, "AF_UNIX"):
            settings.update(by_socket_file())
    builder = SparkSession.builder.master(master).appName("laminae")
    for name, value in {**settings, **chosen}.items():
        if name in chosen or not before.contains(name):
            builder = builder.config(name, value)
    return builder.getOrCreate()


@cache
def by_socket_file() -> dict[str, str]:
    """Settings for Unix domain sockets in a directory that is removed at exit.

    Only this user can enter the directory: Spark protects these sockets by no authentication secret.
    """
    place = tempfile.mkdtemp(prefix="laminae-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return {BY_SOCKET_FILE: "true", SOCKET_DIRECTORY: place}


def settle_epochs(session: SparkSession) -> None:
    """Apply the settings that every session which plans epochs needs.

    PruneFilters would remove the read below a filter that passes nothing, and with it dead letters and counts.
    Constraint propagation takes time and memory exponential in the columns that a projection both names and tests.
    """
    session.conf.set("spark.sql.optimizer.excludedRules", PRUNING)
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")


def _for_local_files(session: SparkSession, config: Mapping[str, str]) -> SparkSession:
    own = cloned(session)
    for name, value in LOCAL_SETTINGS.items():
        if name not in config:
            own.conf.set(name, value)
    return own


def limit_avro_lengths(session: SparkSession) -> None:
    """Bound what one Avro record allocates in this JVM, unless its properties say so already.

    It has no effect where Avro was used before. Executors of a cluster need the same `-D` options.
    """
    jvm: Any = getattr(session, "_jvm")  # noqa: B009  # it is not part of the typed session
    system = java_class(jvm, "java.lang.System")
    for name, limit in AVRO_LIMITS.items():
        if system.getProperty(name) is None:
            system.setProperty(name, str(limit))


def _keep_quiet_about_long_code(session: SparkSession) -> None:
    """Turn off an error log of Spark's code generator.

    An epoch over many schema versions may need more code than a Java method can hold. Spark then falls back to
    interpreted execution, and logs a thousand lines of the generated code as an error.
    """
    jvm: Any = getattr(session, "_jvm")  # noqa: B009  # it is not part of the typed session
    off = java_class(jvm, "org.apache.logging.log4j.Level").OFF
    java_class(jvm, "org.apache.logging.log4j.core.config.Configurator").setLevel(CODE_GENERATOR, off)
