"""What a sink says when its table cannot be written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from laminae.errors import LaminaeError, SinkUnavailable
from laminae.spark.lake.table_files import why

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.model import SinkRecord


@contextmanager
def writing(sink: SinkRecord, location: str) -> Iterator[None]:
    try:
        yield
    except LaminaeError:
        raise
    except Exception as problem:
        # Catalogs and stores of all kinds are behind it, each with errors of its own.
        raise unavailable(sink, location, why(problem)) from problem


def unavailable(sink: SinkRecord, location: str, problem: str) -> SinkUnavailable:
    return SinkUnavailable(sink=sink.name, location=location, problem=problem)
