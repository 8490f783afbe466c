"""Rows into a table of PostgreSQL, put and deleted by their key. Each epoch is one transaction, with its number in it.

The client library is an extra of the package: what imports it is loaded when a sink of this kind delivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.location import postgres_url
from laminae.catalog.postgres import connection_parameters
from laminae.engine.options import SINK_OPTIONS, option
from laminae.engine.sinks import UPSERT
from laminae.errors import InvalidOption
from laminae.references import resolved
from laminae.spark.delivery.modes import mode_of

if TYPE_CHECKING:
    from typing import Any

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment


def deliver_postgres(segment: Segment, sink: SinkRecord) -> None:
    parameters = _parameters(sink)
    from laminae.spark.delivery.postgres.deliver import deliver

    deliver(segment, sink, parameters)


def take_back_postgres(sink: SinkRecord, after: int) -> None:
    parameters = _parameters(sink)
    from laminae.spark.delivery.postgres.deliver import take_back

    take_back(sink, parameters, after)


def begins_again(sink: SinkRecord) -> bool:
    """Whether the sink is emptied when epochs are taken back, and filled by a snapshot."""
    return mode_of(sink) == UPSERT and option(sink.options, "snapshot", SINK_OPTIONS) == "true"


def _parameters(sink: SinkRecord) -> dict[str, Any]:
    """Read at each delivery, so a password that is rotated needs no restart."""
    url, password = (option(sink.options, name, SINK_OPTIONS) for name in ("url", "password"))
    if url is None:
        advice = "Give url = 'postgresql://user@host:5432/database'."
        raise InvalidOption(option="url", owner=sink.name, problem="it is missing", advice=advice)
    found = connection_parameters(*postgres_url(url, sink.name, "url"), sink.name, "url")
    return found if password is None else {**found, "password": resolved(password, "password", sink.name)}
