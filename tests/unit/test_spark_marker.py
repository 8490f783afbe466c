"""`make test-unit` runs no test of Spark, and names a test that starts it without the marker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.spark_marker import MESSAGE

ROOT = Path(__file__).parents[2]
WITHOUT_SPARK = "not spark and not services and not chaos"
# A module that looks like PySpark with a JVM: a real one takes six seconds to start.
TESTS = """
import sys
from types import SimpleNamespace

import pytest

def test_before(): pass

def test_starts_spark():
    sys.modules["pyspark"] = SimpleNamespace(SparkContext=SimpleNamespace(_gateway="a JVM"))

def test_after(): pass

@pytest.mark.spark
def test_of_spark(): pass

@pytest.mark.chaos
def test_of_chaos(): pass
"""


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_some.py").write_text(TESTS)
    (directory / "pytest.ini").write_text("[pytest]\nmarkers =\n  spark\n  services\n  chaos\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.spark_marker", "-p", "no:cacheprovider", "-rf"]
    return subprocess.run(
        [*command, "--rootdir", str(directory), *options, str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_first_test_that_starts_spark_without_the_marker_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", WITHOUT_SPARK)
    assert (done.returncode, "1 failed, 2 passed, 2 deselected" in done.stdout) == (1, True), done.stdout
    (failed,) = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    assert "test_some.py::test_starts_spark" in failed
    assert MESSAGE in done.stdout


def test_spark_may_be_started_in_a_run_of_all_tests(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, "5 passed" in done.stdout) == (0, True), done.stdout


def test_make_runs_the_tests_without_spark() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f'-m "{WITHOUT_SPARK}" tests/unit tests/behaviours tests/properties\n' in makefile
