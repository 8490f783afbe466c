"""A session that laminae starts says nothing on the terminal but the answers; `--verbose` shows what Spark says."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def laminae(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "laminae", *arguments, "--home", str(home)]
    environment = {name: value for name, value in os.environ.items() if name != "LAMINAE_VERBOSE"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_nothing_but_the_answer_is_printed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n{"id": "x"}\n')
    given = f"connector = 'files', format = 'json', path = '{tmp_path / 'in'}'"
    create = f"CREATE SOURCE s (id BIGINT) WITH ({given}); CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM s"  # noqa: S608  # a path of the test
    assert laminae(home, "sql", create).returncode == 0
    ran = laminae(home, "run", "--once")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "live" in ran.stdout
    failed = laminae(home, "sql", "SELECT 1 / (id - 1) FROM s")
    assert failed.returncode == 2
    assert failed.stderr.startswith("[QUERY_FAILED]")
    assert len(failed.stderr) < 1_000
    assert (home / "spark.log").exists()


@pytest.mark.chaos
def test_verbose_shows_what_spark_says(tmp_path: Path) -> None:
    assert laminae(tmp_path / "home", "sql", "CREATE SOURCE s (id BIGINT)").returncode == 0
    command = [sys.executable, "-m", "laminae", "--verbose", "run", "--once", "--home", str(tmp_path / "home")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "log4j" in ran.stderr
