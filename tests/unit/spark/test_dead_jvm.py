"""A JVM that is killed: what a call into it fails with is told in our words."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from laminae.errors import PipelineFailed
from laminae.spark.driver.lease import identity
from laminae.spark.driver.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

KILL_AFTER_SECONDS = 0.2


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield running
        running.kill()


def pipeline_on(process: subprocess.Popen[bytes]) -> Pipeline:
    nothing: Any = None
    return Pipeline(nothing, nothing, nothing, nothing, None, _jvm=identity(process.pid))


def test_a_jvm_that_closes_its_sockets_before_it_is_gone_is_named(process: subprocess.Popen[bytes]) -> None:
    threading.Timer(KILL_AFTER_SECONDS, process.kill).start()
    with (
        pytest.raises(PipelineFailed, match=f"Spark's JVM, process {process.pid}, has ended"),
        pipeline_on(process)._telling_of_a_dead_jvm(),
    ):
        raise ConnectionRefusedError


def test_what_fails_while_the_jvm_lives_is_told_as_it_is(process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(PermissionError), pipeline_on(process)._telling_of_a_dead_jvm():
        raise PermissionError
