"""What is installed and what is missing: packages by what needs them, Java, Spark, PostgreSQL client."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

JAVA_NEEDED = 17


@dataclass(frozen=True, slots=True)
class Finding:
    """One part: what was found, and what to do when that is not enough."""

    part: str
    state: str
    advice: str = ""
    is_required: bool = False


# Package, what needs it, and the extra that brings it (None: laminae itself does).
PACKAGES: tuple[tuple[str, str, str | None], ...] = (
    ("pyarrow", "schemas and batches", None),
    ("pyspark", "pipelines", None),
    ("duckdb", "queries on the catalog", None),
    ("psycopg", "a catalog in PostgreSQL", "postgres"),
    ("confluent-kafka", "connector kafka", "kafka"),
    ("fastavro", "dead letters of format avro", "kafka"),
    ("pyiceberg", "connector iceberg", "iceberg"),
    ("deltalake", "connector delta", "delta"),
    ("starlette", "the web console", "console"),
)


def findings() -> tuple[Finding, ...]:
    return (
        Finding("laminae", _version("laminae") or "not installed"),
        Finding("Python", platform.python_version()),
        java(),
        *(_package(*row) for row in PACKAGES),
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


def _package(name: str, need: str, extra: str | None) -> Finding:
    found = _version(name)
    install = f"pip install 'laminae[{extra}]'" if extra else "pip install --force-reinstall laminae"
    return Finding(name, found or "not installed", "" if found else f"for {need}: {install}", extra is None)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
