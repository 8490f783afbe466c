"""The name by which another system knows a sink for ever: the same at every delivery, another for every sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.instants import microseconds_of

if TYPE_CHECKING:
    from laminae.catalog.model import SinkRecord


def identity_of(sink: SinkRecord) -> str:
    """Its name for people; its number and the moment of its creation tell it from all others, also of other homes.

    The directory of the home is no part of it: a home that is moved has the same sinks.
    """
    return f"{sink.name}/{sink.id}/{microseconds_of(sink.created_at)}"
