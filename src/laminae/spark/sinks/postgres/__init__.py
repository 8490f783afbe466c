"""The PostgreSQL sink: append rows, or upsert and delete them by key.

Each epoch is one transaction, which also records the epoch number. psycopg is an optional extra, so modules that import
it must be imported only when such a sink delivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.definitions.sinks import UPSERT
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import InvalidOption
from laminae.net.postgres import PostgresSettings
from laminae.references import resolved
from laminae.spark.sinks.modes import mode_of

if TYPE_CHECKING:
    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment


def deliver_postgres(segment: Segment, sink: SinkRecord) -> None:
    settings = _settings(sink)
    from laminae.spark.sinks.postgres.deliver import deliver

    deliver(segment, sink, settings)


def take_back_postgres(sink: SinkRecord, after: int) -> None:
    settings = _settings(sink)
    from laminae.spark.sinks.postgres.deliver import take_back

    take_back(sink, settings, after)


def begins_again(sink: SinkRecord) -> bool:
    """Whether a rewind empties the sink's table and refills it from a snapshot."""
    return mode_of(sink) == UPSERT and option(sink.options, "snapshot", SINK_OPTIONS) == "true"


def _settings(sink: SinkRecord) -> PostgresSettings:
    """Connection settings, read at each delivery, so that a rotated password needs no restart."""
    url, password = (option(sink.options, name, SINK_OPTIONS) for name in ("url", "password"))
    if url is None:
        advice = "Give url = 'postgresql://user@host:5432/database'."
        raise InvalidOption(option="url", owner=sink.name, problem="it is missing", advice=advice)
    secret = None if password is None else resolved(password, "password", sink.name)
    return PostgresSettings.of_url(url, sink.name, "url", password=secret)
