"""What importing laminae loads, and that every public name is there."""

import subprocess
import sys

import pytest

import laminae


@pytest.mark.parametrize("name", laminae.__all__)
def test_every_public_name_is_there(name):
    assert getattr(laminae, name) is not None
    assert name in dir(laminae)


def test_an_unknown_name_is_told_as_python_does():
    with pytest.raises(AttributeError, match="no_such_name"):
        laminae.no_such_name  # noqa: B018  # the look is the test


@pytest.mark.parametrize(
    ("imported", "unwanted"),
    [
        ("laminae", {"pyspark", "pyiceberg", "confluent_kafka", "pyarrow", "sqlglot", "duckdb", "lark"}),
        # What a Python worker of Spark loads before its first row.
        (
            "laminae.spark.formats.json.arrow_lines",
            {"sqlglot", "duckdb", "lark", "laminae.api.database", "laminae.catalog", "rich"},
        ),
    ],
)
def test_importing_loads_only_what_is_needed(imported, unwanted):
    code = f"import sys, {imported}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert unwanted & set(found.stdout.split()) == set()
