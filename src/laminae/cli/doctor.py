"""Reports what is installed, what actually loads, and what is missing: Python packages, Java, Spark connectors."""

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
    """One component: what was found, and what to do if that is not sufficient."""

    part: str
    state: str
    advice: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Package:
    """A package, the module that is used, what needs it, and the extra that installs it (None: laminae itself)."""

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
    """Everything that can be checked without Spark."""
    return (
        Finding("laminae", _version("laminae") or "not installed"),
        Finding("Python", platform.python_version()),
        java(),
        *map(package, PACKAGES),
    )


def spark_connectors() -> tuple[Finding, ...]:
    """The connectors that Spark needs on its class path. Starts Spark to check them."""
    from laminae.spark.driver.connectors import look_anew

    try:
        connectors = look_anew()
    except NotAvailable as problem:
        return (Finding("Spark", problem.message, problem.remedy, is_required=True),)
    return tuple(
        Finding(connector.artifact, "not on Spark's class path", f"for {connector.need}: {connector.advice}")
        if connector.advice
        else Finding(connector.artifact, "loads")
        for connector in connectors
    )


def java() -> Finding:
    """The Java that Spark would use: from JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    executable = str(Path(home, "bin", "java")) if home else shutil.which("java")
    package = f"openjdk-{JAVA_NEEDED}-jre-headless"
    advice = f"Spark needs Java {JAVA_NEEDED}: install a JDK (apt-get install {package}) or set JAVA_HOME"
    if executable is None or not Path(executable).exists():
        return Finding("Java", "not found", advice, is_required=True)
    output = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    number = re.search(r'version "([^"]+)"', output)
    if number is None:
        return Finding("Java", "does not run", advice, is_required=True)
    enough = int(number[1].split(".")[0]) >= JAVA_NEEDED
    return Finding("Java", number[1], "" if enough else advice, is_required=True)


def package(wanted: Package) -> Finding:
    """Whether the package is installed and can be imported: a system library it depends on may be missing."""
    name, extra = wanted.name, wanted.extra
    install = f"pip install 'laminae[{extra}]'" if extra else "pip install --force-reinstall laminae"
    advice, is_required = f"for {wanted.need}: {install}", extra is None
    installed = _version(name)
    if installed is None:
        return Finding(name, "not installed", advice, is_required)
    try:
        import_module(wanted.module)
    except ImportError as problem:
        return Finding(name, f"{installed} does not load: {problem}", advice, is_required)
    return Finding(name, installed, is_required=is_required)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
