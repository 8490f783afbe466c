"""A test that is skipped: said at the end of a run, a failure in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = """
import pytest

@pytest.fixture
def disk():
    pytest.skip("no disk: NOT tested")

def test_in_the_body():
    pytest.skip("no mount: NOT tested")

def test_in_a_fixture(disk):
    pass
"""


@pytest.mark.parametrize(("ci", "status", "counted"), [("", 0, "2 skipped"), ("true", 1, "1 failed, 1 error")])
def test_a_skip_is_told_and_fails_in_ci(tmp_path: Path, ci: str, status: int, counted: str) -> None:
    (tmp_path / "test_skipped.py").write_text(SKIPPED)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.skips", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, counted in done.stdout) == (status, True), done.stdout
    assert "no mount: NOT tested" in done.stdout
    assert "no disk: NOT tested" in done.stdout
