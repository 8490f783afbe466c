"""A PostgreSQL server of the tests' own: made in a temporary directory, stopped at the end whatever happens.

The server refuses to run as root, so root starts it as an unprivileged user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEBIAN = Path("/usr/lib/postgresql")
_UNPRIVILEGED = ("postgres", "nobody")
# No durability: a test kills clients, never the server. Little memory: CI machines are small. Connectors read the log.
_SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "autovacuum=off",
    "shared_buffers=16MB",
    "max_connections=50",
    "wal_level=logical",
)


def find_binaries() -> Path | None:
    """The directory of initdb, pg_ctl and postgres, or None."""
    candidates = sorted(_DEBIAN.glob("*/bin"), reverse=True)
    if on_path := shutil.which("pg_ctl"):
        candidates.insert(0, Path(on_path).resolve().parent)
    return next((found for found in candidates if (found / "initdb").exists() and (found / "pg_ctl").exists()), None)


@contextmanager
def running_server(binaries: Path) -> Iterator[str]:
    """The URL of a database on a server that listens on 127.0.0.1 alone."""
    user = _server_user()
    directory = Path(tempfile.mkdtemp(prefix="laminae-postgres-"))
    try:
        if user is not None:
            os.chown(directory, user.pw_uid, user.pw_gid)
        data, port = directory / "data", _free_port()
        cluster = ("-U", "laminae", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        _run(user, binaries / "initdb", "-D", data, *cluster)
        options = [f"-c {setting}" for setting in (*_SETTINGS, f"unix_socket_directories={directory}", f"port={port}")]
        options.append("-c listen_addresses=127.0.0.1")
        log = directory / "server.log"
        try:
            _run(user, binaries / "pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", " ".join(options))
            yield f"postgresql://laminae@127.0.0.1:{port}/postgres"
        finally:
            _run(user, binaries / "pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _server_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in _UNPRIVILEGED if name in known)


def _run(user: pwd.struct_passwd | None, *command: object) -> None:
    # No pipe: the server would inherit it from pg_ctl and keep it open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
            check=False,
        )
        output.seek(0)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {output.read().decode(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
