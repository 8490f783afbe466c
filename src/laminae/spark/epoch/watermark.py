"""The latest event time among the rows of an epoch, which advances the source's watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import TimestampNTZType

from laminae.engine.definitions.schema_edits import path_of
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from laminae.catalog.model import SourceRecord

TIME = "event_time"


class EventTimes:
    """Observes the maximum event time in the epoch's job. Does nothing for a source without a watermark."""

    def __init__(self, source: SourceRecord) -> None:
        self._column_id = None if source.watermark is None else source.watermark.column_id
        self._schema = source.schema
        self._observation: Observation | None = None

    @property
    def are_wanted(self) -> bool:
        return self._column_id is not None

    def seen_in(self, rows: DataFrame) -> DataFrame:
        if self._column_id is None:
            return rows
        self._observation = Observation()
        path = path_of(self._schema, self._column_id)
        assert path is not None  # the column of a watermark cannot be dropped
        column = F.col(".".join(map(quoted, path)))
        is_local = isinstance(rows.select(column).schema.fields[0].dataType, TimestampNTZType)
        return rows.observe(self._observation, F.max(_microseconds(column, is_local)).alias(TIME))

    def latest(self) -> int | None:
        """The maximum in microseconds. Call it only after the job has ended."""
        if self._observation is None:
            return None
        latest = self._observation.get[TIME]
        return None if latest is None else int(latest)


def _microseconds(column: Column, is_local: bool) -> Column:
    instant = column.cast("timestamp")
    # A TIMESTAMP_NTZ is taken as UTC, whatever the session's time zone.
    return F.unix_micros(F.from_utc_timestamp(instant, F.current_timezone()) if is_local else instant)
