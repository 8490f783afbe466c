"""Redirects the standard error of a JVM that laminae starts to a file, unless verbose output is requested.

Spark, Hadoop and the JVM write warnings, progress bars and stack traces of workers to standard error, in the middle of
laminae's output. An error that stops a source reaches the user as a LaminaeError; the rest is for diagnosis. The output
of a session that the user passes in must not be changed.
"""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger

from laminae.catalog.location import find_home
from laminae.catalog.opening import CATALOG_FILE
from laminae.errors import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

VERBOSE = "LAMINAE_VERBOSE"
LOG_FILE = "spark.log"
# Each logs a query and the JVM stack trace as one line of JSON, in addition to the exception that is raised.
QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# A user who sets one of these wants to see Spark's output.
LOUD_SETTINGS = frozenset({"spark.log.level", "spark.ui.showConsoleProgress"})
_TAIL_BYTES = 2_000


def is_verbose(config: Mapping[str, object]) -> bool:
    return os.environ.get(VERBOSE, "") not in ("", "0") or not LOUD_SETTINGS.isdisjoint(config)


def start_quiet_jvm(home: str, settings: Mapping[str, object]) -> None:
    """Start the JVM with its standard error in a file. No effect if a JVM runs already or spark-submit started us."""
    context: Any = SparkContext
    if context._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    for name in QUERY_LOGGERS:
        # Use PySparkLogger: the first getLogger call fixes a name's class, and a plain Logger rejects Spark's keywords.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, str(value))
    with _log(home) as log:
        began = log.tell()
        try:
            gateway = launch_gateway(conf, {"stderr": log})  # type: ignore[no-untyped-call]  # it has no types
        except PySparkRuntimeError as problem:
            raise _not_started(problem, Path(log.name), began) from None
    context._ensure_initialized(gateway=gateway, conf=conf)


def _log(home: str) -> BinaryIO:
    """The log file of the home, which only errors are appended to; a temporary file if it cannot be written."""
    directory = find_home(home).directory
    if directory is not None and (directory / CATALOG_FILE).exists():
        with suppress(OSError):
            return open(directory / LOG_FILE, "ab", opener=_for_the_owner)
    number, path = tempfile.mkstemp(prefix="laminae-", suffix=".log")
    os.close(number)
    return Path(path).open("ab")


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _not_started(problem: Exception, log: Path, began: int) -> NotAvailable:
    with log.open("rb") as file:
        file.seek(began)
        said = file.read()[-_TAIL_BYTES:].decode(errors="replace").strip().splitlines()
    words = said[-1] if said else str(problem)
    advice = f"Spark needs Java 17 and enough memory: `laminae doctor` checks both. Its output is in {log}."
    return NotAvailable(feature="Spark", problem=f"it does not start: {words}", advice=advice)
