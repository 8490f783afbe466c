"""The id of a sink in external systems: the same at every delivery, different for every sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.catalyst.types import microseconds_of

if TYPE_CHECKING:
    from laminae.catalog.model import SinkRecord


def identity_of(sink: SinkRecord) -> str:
    """The name is for people; the id and the creation time make it unique, also across homes.

    The directory of the home is not part of it: moving a home keeps the identity of its sinks.
    """
    return f"{sink.name}/{sink.id}/{microseconds_of(sink.created_at)}"
