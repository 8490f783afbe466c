"""The lease of a running driver: acquired at start, renewed while it runs, taken over at once if its holder is dead.

After kill -9 of a driver's Python process, its JVM lives for some seconds and could still write, so a successor waits
for the JVM to end.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from laminae.errors import CatalogUnavailable, HomeUnwritable, LaminaeError, LeaseHeld, LeaseLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import Lease
    from laminae.catalog.port import Catalog

TTL = timedelta(seconds=15)
RENEW_SECONDS = 5.0
JVM_GRACE_SECONDS = 30.0

_given_up: set[tuple[str, int]] = set()
"""Leases of this process whose release could not be written to the catalog."""


@dataclass(slots=True)
class HeldLease:
    """A lease and the thread that renews it. `lost` is the error of the last renewal or release, if it failed.

    `LeaseLost` ends the thread; other errors are retried.
    """

    catalog: Catalog
    token: int
    lost: LaminaeError | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def keep(self) -> None:
        self._thread = threading.Thread(target=self._renew, name="laminae-lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.catalog.release_lease(self.token)
        except (HomeUnwritable, CatalogUnavailable) as problem:
            # For example, the disk is full. Not raised, because it would hide the error that ended the driver. The
            # lease expires without a release, and a new driver on this machine need not wait for that.
            self.lost = problem
            _given_up.add((self.catalog.location, self.token))

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_SECONDS):
            try:
                self.catalog.renew_lease(self.token, datetime.now(UTC), TTL)
            except LeaseLost as problem:
                self.lost = problem
                return
            except (HomeUnwritable, CatalogUnavailable) as problem:
                # Retried until the lease expires. Commits check the fencing token in any case.
                self.lost = problem
            else:
                self.lost = None


def refuse_if_held(catalog: Catalog, now: datetime) -> None:
    """Raise `LeaseHeld` if another driver is alive. Checked early, to avoid starting a Spark session for nothing."""
    present = catalog.lease()
    if present is None or (catalog.location, present.token) in _given_up:
        return
    if present.expires_at > now and not is_dead(present):
        seconds = math.ceil((present.expires_at - now).total_seconds())
        raise LeaseHeld(location=catalog.location, holder=f"process {present.pid} on {present.host}", seconds=seconds)


def take_lease(catalog: Catalog, jvm_pid: int | None, clock: Callable[[], datetime]) -> HeldLease:
    """Acquire the lease of the home, or raise `LeaseHeld` with its holder."""
    present = catalog.lease()
    dead = present is not None and is_dead(present)
    if dead and present is not None:
        _wait_for_jvm(present)
    given_up = present is not None and (catalog.location, present.token) in _given_up
    lease = catalog.acquire_lease(
        holder=json.dumps({"python": identity(os.getpid()), "jvm": identity(jvm_pid) if jvm_pid else None}),
        host=socket.gethostname(),
        pid=os.getpid(),
        now=clock(),
        ttl=TTL,
        dead=dead or given_up,
        seen_token=present.token if present is not None else None,
    )
    held = HeldLease(catalog, lease.token)
    held.keep()
    return held


def is_dead(lease: Lease) -> bool:
    """Whether the holder ran on this host and its process has ended. A reused process id has another start time."""
    return lease.host == socket.gethostname() and identity(lease.pid) != _holder(lease).get("python")


def is_alive(known: str) -> bool:
    """Whether the process with this identity is running. Its process id alone may have been reused."""
    return identity(int(known.partition("@")[0])) == known


def _holder(lease: Lease) -> dict[str, str | None]:
    try:
        holder = json.loads(lease.holder)
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def identity(pid: int) -> str | None:
    """Process id and start time of a running process, else None. Without /proc it is the process id only.

    The start time is in clock ticks since boot, which no correction of the wall clock changes.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") else _by_signal(pid)
    except ProcessLookupError:
        return None
    # A zombie keeps its id until its parent reaps it, but writes nothing any more.
    return None if fields[0] in (b"Z", b"X") else f"{pid}@{fields[19].decode()}"


def _by_signal(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return str(pid)


def _wait_for_jvm(lease: Lease) -> None:
    jvm = _holder(lease).get("jvm")
    if not jvm:
        return
    deadline = time.monotonic() + JVM_GRACE_SECONDS
    while is_alive(jvm) and time.monotonic() < deadline:
        time.sleep(0.05)
