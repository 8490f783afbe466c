"""Decode a few messages on Spark and see what became of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.decoders import Decoder, DecoderTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Decoded = tuple[dict[str, object] | None, str | None, bool]
"""The row, the reason why there is none, and whether the message has unknown fields."""

Decode = Callable[..., list[Decoded]]


def decoded(
    spark: SparkSession,
    values: Sequence[bytes | None],
    table: DecoderTable | pa.Schema,
    versions: Sequence[int | None] | None = None,
    items: Sequence[int] | None = None,
) -> list[Decoded]:
    """A schema stands for a table of one version that looks for unknown fields."""
    from laminae.spark.formats.json.decode import decode
    from laminae.spark.formats.protocol import ERROR, RAW_SCHEMA, ROW, UNKNOWN

    if isinstance(table, pa.Schema):
        table = DecoderTable((Decoder(1, table, 0),), table, finds_unknown_fields=True)
    versions, items = versions or [None] * len(values), items or [0] * len(values)
    rows = [
        (None, None if value is None else bytearray(value), "p", i, items[i], None, versions[i])
        for i, value in enumerate(values)
    ]
    found = decode(spark.createDataFrame(rows, RAW_SCHEMA), table).orderBy("offset").collect()
    return [(None if row[ERROR] else row[ROW].asDict(recursive=True), row[ERROR], row[UNKNOWN]) for row in found]
