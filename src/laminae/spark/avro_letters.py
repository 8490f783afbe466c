"""The exact reasons of dead letters in Avro: Spark's reader says only that bytes could not be read.

Python sees the refused records alone, in the job that writes them down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.avro_reasons import can_tell, why_unreadable
from laminae.codec.confluent import HEADER
from laminae.spark.avro_reading import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable

REASON = "reason"


def with_exact_reasons(letters: DataFrame, table: DecoderTable) -> DataFrame:
    """Raw records and the `reason` of each; those of records without a frame stay as they are."""
    if not table.writers or not can_tell():
        return letters
    known = tuple((unreadable(writer), writer.avro) for writer in table.writers if writer.refusal is None)
    return letters.mapInArrow(ExactReasons(known), letters.schema)


@dataclass(frozen=True, slots=True)
class ExactReasons:
    """`schemas` are pairs: the reason that Spark's reader gives, and the schema that it read with."""

    schemas: tuple[tuple[str, str], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schemas = dict(self.schemas)
        for batch in batches:
            told = zip(batch.column(REASON).to_pylist(), batch.column("value").to_pylist(), strict=True)
            exact = [_exact(reason, value, schemas.get(reason)) for reason, value in told]
            place = batch.schema.get_field_index(REASON)
            yield batch.set_column(place, batch.schema.field(place), pa.array(exact, batch.schema.field(place).type))


def _exact(reason: str, value: bytes, schema: str | None) -> str:
    why = None if schema is None else why_unreadable(schema, value[HEADER.size :])
    return reason if why is None else f"{reason}: {why}"
