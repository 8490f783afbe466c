"""A crash at a named point of the protocol, raised in place of kill -9."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from laminae.engine import faults

if TYPE_CHECKING:
    from collections.abc import Iterator


class CrashError(BaseException):
    """Nothing of ours catches it."""


class EpochCrashError(Exception):
    """The same inside an epoch: it crosses the JVM, which carries the names of exceptions and of nothing else."""


@contextmanager
def crash_at(point: str, kind: type[BaseException] = CrashError) -> Iterator[None]:
    """What is done inside must come to the point, and dies there, once."""

    def crash() -> None:
        faults.clear()
        raise kind(point)

    faults.install(point, crash)
    try:
        with pytest.raises(BaseException, match=rf"{kind.__name__}|^{point}$"):
            yield
    finally:
        faults.clear()
