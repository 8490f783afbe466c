"""The log of a rate source: item n is the n-th second of its life, with rows that follow from its number alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from laminae.spark.contract import RAW_COLUMNS
from laminae.spark.logs.numbered import NumberedLog, no_records
from laminae.spark.logs.tails import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.contract import LogRange

# Without regard to the session's time zone: the bytes of a record are the same at every reading.
JSON_OPTIONS = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


class RateLog(NumberedLog):
    """Its settings have `rows_per_second` and `created`, the microseconds since 1970 at which it began."""

    def read(self, spark: SparkSession, span: LogRange, columns: Sequence[str] = RAW_COLUMNS) -> DataFrame:
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
