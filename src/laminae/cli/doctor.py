"""What is installed, what really loads, and what is missing: packages by what needs them, Java, Spark's connectors."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from laminae.errors import NotAvailable

JAVA_NEEDED = 17


@dataclass(frozen=True, slots=True)
class Finding:
    """One part: what was found, and what to do when that is not enough."""

    part: str
    state: str
    advice: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Package:
    """A package, the module of it that is used, what needs it, and the extra that brings it (None: laminae does)."""

    name: str
    module: str
    need: str
    extra: str | None = None


PACKAGES = (
    Package("pyarrow", "pyarrow", "schemas and batches"),
    Package("pyspark", "pyspark", "pipelines"),
    Package("duckdb", "duckdb", "queries on the catalog"),
    Package("psycopg", "psycopg", "a catalog in PostgreSQL, and sinks with connector postgres", "postgres"),
    Package("fastavro", "fastavro", "Kafka sinks and dead letters of format avro", "kafka"),
    Package("pyiceberg", "pyiceberg.catalog.sql", "connector iceberg", "iceberg"),
    Package("deltalake", "deltalake", "connector delta", "delta"),
    Package("starlette", "starlette", "the web console", "console"),
)


def findings() -> tuple[Finding, ...]:
    """What can be told without Spark."""
    return (
        Finding("laminae", _version("laminae") or "not installed"),
        Finding("Python", platform.python_version()),
        java(),
        *map(package, PACKAGES),
    )


def spark_connectors() -> tuple[Finding, ...]:
    """The connectors that Spark needs on its class path. It is started for that."""
    from laminae.spark.connectors import look_anew

    try:
        found = look_anew()
    except NotAvailable as problem:
        return (Finding("Spark", problem.message, problem.remedy, is_required=True),)
    return tuple(
        Finding(each.artifact, "not on Spark's class path", f"for {each.need}: {each.advice}")
        if each.advice
        else Finding(each.artifact, "loads")
        for each in found
    )


def java() -> Finding:
    """The Java that Spark would start: JAVA_HOME's, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    package = f"openjdk-{JAVA_NEEDED}-jre-headless"
    advice = f"Spark needs Java {JAVA_NEEDED}: install a JDK (apt-get install {package}) or set JAVA_HOME"
    if found is None or not Path(found).exists():
        return Finding("Java", "not found", advice, is_required=True)
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    number = re.search(r'version "([^"]+)"', told)
    if number is None:
        return Finding("Java", "does not run", advice, is_required=True)
    enough = int(number[1].split(".")[0]) >= JAVA_NEEDED
    return Finding("Java", number[1], "" if enough else advice, is_required=True)


def package(wanted: Package) -> Finding:
    """Whether it is there, and whether it really loads: a library of the system below it may be missing."""
    name, extra = wanted.name, wanted.extra
    install = f"pip install 'laminae[{extra}]'" if extra else "pip install --force-reinstall laminae"
    advice, is_required = f"for {wanted.need}: {install}", extra is None
    found = _version(name)
    if found is None:
        return Finding(name, "not installed", advice, is_required)
    try:
        import_module(wanted.module)
    except ImportError as problem:
        return Finding(name, f"{found} does not load: {problem}", advice, is_required)
    return Finding(name, found, is_required=is_required)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
