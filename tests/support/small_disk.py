"""A disk of a few megabytes, to be filled: a tmpfs, which only root (or sudo without a password) may mount."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_MOUNT = "a small tmpfs cannot be mounted here: a full disk was NOT tested"


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[bool]:
    """Whether `place` is one now."""
    place.mkdir()
    mounted = _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=777", "laminae", str(place))
    try:
        yield mounted
    finally:
        # Lazily: a JVM may still have a file of it open.
        if mounted:
            _run("umount", "-l", str(place))


def fill(directory: Path) -> Path:
    """A file that takes every byte that is left."""
    rest = directory / "rest"
    with rest.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(b"\0" * 65536)
        except OSError:
            return rest


def _run(*command: str) -> bool:
    prefix = () if os.geteuid() == 0 else ("sudo", "-n")
    try:
        done = subprocess.run([*prefix, *command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0
