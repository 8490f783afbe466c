"""Rejects rows dated too far in the future: one such row would advance the watermark and make all other rows late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine.definitions.schema_edits import field_at, path_of
from laminae.engine.source_spec import spec_of
from laminae.spark.catalyst.expression import call, column, first_text, literal, when
from laminae.spark.formats.protocol import ERROR, ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from laminae.catalog.model import SourceRecord

TOO_FAR = "{name} is more than {most} ahead of the record: "


@dataclass(frozen=True, slots=True)
class FutureLimit:
    """How far event times of a source may be ahead of the timestamp of their record.

    The record's own timestamp is used, not the clock, so that reading the record again gives the same result.
    """

    path: tuple[str, ...]
    is_local: bool
    most: timedelta
    text: str
    """The limit as the option states it."""

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, with an error set on those dated too far in the future."""
        value = column(ROW)
        for name in self.path:
            value = value.field(name)
        instant = value.cast("TIMESTAMP")
        if self.is_local:
            # TIMESTAMP_NTZ is interpreted as UTC, whatever the session time zone is.
            instant = call("from_utc_timestamp", instant, call("current_timezone"))
        most = literal(self.most // timedelta(microseconds=1))
        latest = call("unix_micros", column("timestamp")) + most
        reason = call("concat", literal(TOO_FAR.format(name=".".join(self.path), most=self.text)), value.cast("STRING"))
        is_ahead = call("unix_micros", instant).compared(">", latest)
        return records.withColumn(ERROR, first_text([column(ERROR), when(is_ahead, reason)]).column)


def future_limit(source: SourceRecord) -> FutureLimit | None:
    """None for a source without `max_future`, or without a watermark that such rows could advance."""
    most = spec_of(source).max_future
    if most is None or source.watermark is None:
        return None
    path = path_of(source.schema, source.watermark.column_id)
    assert path is not None  # the column of a watermark cannot be dropped
    kind = field_at(source.schema, path, source.name).type
    is_local = pa.types.is_timestamp(kind) and kind.tz is None
    return FutureLimit(path, is_local, most, spec_of(source).setting("max_future") or "")
