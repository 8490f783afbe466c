"""What a sink says when its table cannot be written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from laminae.errors import LaminaeError, SinkUnavailable
from laminae.spark.lake.outside_words import cause, why

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import SinkRecord


@contextmanager
def writing(sink: SinkRecord, location: str, secrets: Sequence[str] = ()) -> Iterator[None]:
    """`secrets` are what the table is reached with."""
    try:
        yield
    except LaminaeError:
        raise
    except Exception as problem:  # noqa: BLE001  # catalogs and stores of all kinds, each with errors of its own
        raise unavailable(sink, location, why(problem, secrets)) from cause(problem, secrets)


def unavailable(sink: SinkRecord, location: str, problem: str) -> SinkUnavailable:
    return SinkUnavailable(sink=sink.name, location=location, problem=problem)
