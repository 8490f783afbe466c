"""Raw records to rows of the current schema, as column expressions: the JVM reads the JSON, no Python sees a row.

A record that does not decode keeps its raw columns and gets a reason; nothing is dropped or raised here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  (the name every Spark reader knows)

from laminae.spark.contract import ERROR, ROW, UNKNOWN
from laminae.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable

CORRUPT = "_corrupt_record"


def decode(raw: DataFrame, table: DecoderTable) -> DataFrame:
    """`raw` with the columns `_row`, `_error` and `_unknown` (see `contract`)."""
    schema = spark_schema(table.current)
    read = schema.add(CORRUPT, "string")
    parsed = raw.withColumn(
        "_parsed",
        F.from_json(F.col("value").cast("string"), read, {"columnNameOfCorruptRecord": CORRUPT, "timeZone": "UTC"}),
    )
    corrupt = F.col("_parsed").isNull() | F.col("_parsed").getField(CORRUPT).isNotNull()
    fields = [
        F.col("_parsed").getField(field.name).alias(field.name) for field in schema.fields if field.name != CORRUPT
    ]
    return parsed.select(
        *raw.columns,
        F.when(~corrupt, F.struct(*fields)).alias(ROW),
        F.when(corrupt, F.lit("malformed JSON")).alias(ERROR),
        F.lit(False).alias(UNKNOWN),
    )
