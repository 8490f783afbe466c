"""A driver's processes in the hands of a test: start it, know its Python and its JVM, kill either or both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.spark.driver.lease import is_alive
from tests.support.driver import RUNS
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from laminae.catalog import Catalog
    from laminae.catalog.model import Lease

PYTHON, JVM, BOTH = "python", "jvm", "both"
ROOT = Path(__file__).parents[2]
START_SECONDS, END_SECONDS = 120.0, 60.0


@dataclass(slots=True)
class Driver:
    """One life of a driver. Its output goes to `log`, which a failure shows."""

    catalog: Catalog
    home: str
    log: Path
    url: str | None = None
    config: Sequence[str] = ()
    kill_at: str | None = None
    """A point of an epoch at which it kills itself."""
    jvm: str = ""
    """Its identity: the id of the process and when it began."""
    _process: subprocess.Popen[bytes] = field(init=False)
    _output: IO[bytes] = field(init=False)

    def start(self) -> Driver:
        """Return when it holds the lease of the home, and Spark's JVM is known."""
        command = [sys.executable, "-m", "tests.support.driver", self.home]
        command += ["--catalog", self.url] if self.url else []
        command += [part for setting in self.config for part in ("--config", setting)]
        command += ["--kill-at", self.kill_at] if self.kill_at else []
        self._output = self.log.open("wb")
        # A session of its own: at the end nothing of it is left, not even what a killed JVM had started.
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONWARNINGS": "ignore"},
        )
        until(self._holds_lease, START_SECONDS, f"a driver holds the lease\n{self.tail()}")
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        """True, or an error with the end of its log: nothing is to be expected of a driver that has ended."""
        assert self._process.poll() is None, f"the driver ended with {self._process.returncode}\n{self.tail()}"
        return True

    def kill(self, what: str) -> None:
        """kill -9. A Python whose JVM is gone ends by itself, with an error."""
        if what in (PYTHON, BOTH):
            self._process.kill()
        if what in (JVM, BOTH):
            os.kill(_process(self.jvm), signal.SIGKILL)
        status = self._process.wait(END_SECONDS)
        if what == JVM:
            assert status == 1, f"a driver without its JVM ended with {status}\n{self.tail()}"
            # Threads that were calling the JVM may log their errors after it.
            assert "Spark's JVM" in self.log.read_text(errors="replace"), self.tail()
        self._output.close()

    def await_own_kill(self) -> None:
        """Return when it has killed itself at its point."""
        status = self._process.wait(START_SECONDS)
        self._output.close()
        assert status == -signal.SIGKILL, f"the driver ended with {status}\n{self.tail()}"

    def stop(self) -> None:
        """An orderly end."""
        self._process.terminate()
        status = self._process.wait(END_SECONDS)
        self._output.close()
        assert status == 0, f"the driver ended with {status}\n{self.tail()}"

    def sweep(self) -> None:
        """End whatever is left of it."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(END_SECONDS)
        if self.jvm and is_alive(self.jvm):
            os.kill(_process(self.jvm), signal.SIGKILL)
        self._output.close()

    def runs(self) -> list[dict[str, str]]:
        """The run id of each source's query, at the start and at the end of an orderly life."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line.removeprefix(RUNS)) for line in lines if line.startswith(RUNS)]

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def _holds_lease(self) -> bool:
        lease = self.catalog.lease() if self.is_running() else None
        if lease is None or lease.pid != self.pid:
            return False
        self.jvm = jvm_of(lease)
        return True


def jvm_of(lease: Lease) -> str:
    return str(json.loads(lease.holder)["jvm"])


def _process(identity: str) -> int:
    return int(identity.partition("@")[0])
