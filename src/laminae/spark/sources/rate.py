"""The log of a rate source: item n is the n-th second since its creation; its rows are a function of n alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from laminae.engine.source_spec import spec_of
from laminae.spark.formats.protocol import RAW_COLUMNS
from laminae.spark.sources.base import NumberedSource, no_records, settings_of
from laminae.spark.sources.latest_offset import SECOND, ClockTail

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.spark.sources.protocol import LogRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Independent of the session's time zone: every read of a record must return the same bytes.
JSON_OPTIONS = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def open_source(source: SourceRecord, home: str) -> RateSource:
    created = (source.created_at - _EPOCH) // timedelta(microseconds=1)
    speed = spec_of(source).setting("rows_per_second") or "1"
    settings = settings_of(source, home, rows_per_second=speed, created=str(created))
    return RateSource(settings, ClockTail(created))


class RateSource(NumberedSource):
    """Settings: `rows_per_second`, and `created`, the creation time in microseconds since 1970."""

    def read(
        self,
        spark: SparkSession,
        span: LogRange,
        columns: Sequence[str] = RAW_COLUMNS,
        boundaries: Collection[int] | None = None,
    ) -> DataFrame:
        items = self._items(span)
        speed = int(self._settings["rows_per_second"])
        if not items or not speed:
            return no_records(spark)
        created = int(self._settings["created"])
        timestamp = F.timestamp_micros(F.lit(created) + F.expr(f"id * {SECOND} div {speed}"))
        numbered = spark.range(items.start * speed, items.stop * speed).withColumn("timestamp", timestamp)
        document = F.to_json(F.struct(F.col("id").alias("value"), "timestamp"), JSON_OPTIONS)
        return numbered.select(
            F.lit(None).cast("binary").alias("key"),
            document.cast("binary").alias("value"),
            F.lit(None).cast("string").alias("partition"),
            F.col("id").alias("offset"),
            F.expr(f"id div {speed}").alias("item"),
            F.col("timestamp"),
            F.lit(None).cast("int").alias("version"),
        )
