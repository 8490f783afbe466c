"""Rows that are dated too far ahead: one such row would move the watermark, and make all others late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine.edits import field_at, path_of
from laminae.engine.options import duration, option
from laminae.spark.contract import ERROR, ROW
from laminae.spark.expression import call, column, first_text, literal, when

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from laminae.catalog.model import SourceRecord

TOO_FAR = "{name} is more than {most} ahead of the record: "


@dataclass(frozen=True, slots=True)
class FutureLimit:
    """Event times of a source are at most so far ahead of the time at which their record was written.

    That time is the record's own, so that it is judged alike whenever it is read again.
    """

    path: tuple[str, ...]
    is_local: bool
    text: str

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, those dated too far ahead with an error."""
        found = column(ROW)
        for name in self.path:
            found = found.field(name)
        instant = found.cast("TIMESTAMP")
        if self.is_local:
            # A time without a zone counts as it is written, whatever the zone of the session.
            instant = call("from_utc_timestamp", instant, call("current_timezone"))
        most = literal(duration(self.text) // timedelta(microseconds=1))
        latest = call("unix_micros", column("timestamp")) + most
        told = call("concat", literal(TOO_FAR.format(name=".".join(self.path), most=self.text)), found.cast("STRING"))
        is_ahead = call("unix_micros", instant).compared(">", latest)
        return records.withColumn(ERROR, first_text([column(ERROR), when(is_ahead, told)]).column)


def future_limit(source: SourceRecord) -> FutureLimit | None:
    """None for a source without `max_future`, or without a watermark that such rows could move."""
    most = option(source.options, "max_future")
    if most is None or source.watermark is None:
        return None
    path = path_of(source.schema, source.watermark.column_id)
    assert path is not None  # the column of a watermark cannot be dropped
    kind = field_at(source.schema, path, source.name).type
    return FutureLimit(path, pa.types.is_timestamp(kind) and kind.tz is None, most)
