"""Errors of a sink whose lakehouse table cannot be written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from laminae.errors import LaminaeError, SinkUnavailable
from laminae.spark.sources.lakehouse.error_text import cause, why

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import SinkRecord


@contextmanager
def writing(sink: SinkRecord, location: str, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Raise `SinkUnavailable` for any error of the table library. `secrets` are credentials to mask in its text."""
    try:
        yield
    except LaminaeError:
        raise
    except Exception as problem:  # noqa: BLE001  # every catalog and object store has its own exception types
        raise unavailable(sink, location, why(problem, secrets)) from cause(problem, secrets)


def unavailable(sink: SinkRecord, location: str, problem: str) -> SinkUnavailable:
    return SinkUnavailable(sink=sink.name, location=location, problem=problem)
