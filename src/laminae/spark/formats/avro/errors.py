"""Adds the exact reason to Avro dead letters: Spark's reader reports only that the bytes could not be decoded.

Only rejected records pass through Python, in the job that writes the dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.avro.errors import can_tell, why_unreadable
from laminae.codec.confluent import HEADER
from laminae.spark.catalyst.plans.prepared_frame import map_in_arrow
from laminae.spark.formats.avro.record import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable

REASON = "reason"


def with_exact_reasons(letters: DataFrame, table: DecoderTable) -> DataFrame:
    """Dead letters (raw records with a `reason`), with exact reasons; those of unframed records are unchanged."""
    if not table.writers or not can_tell():
        return letters
    known = tuple((unreadable(writer), writer.avro) for writer in table.writers if writer.refusal is None)
    return map_in_arrow(letters, ExactReasons(known), letters.schema)


@dataclass(frozen=True, slots=True)
class ExactReasons:
    """`schemas` are pairs of the reason to report when Spark's reader fails, and the schema that it used."""

    schemas: tuple[tuple[str, str], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schemas = dict(self.schemas)
        for batch in batches:
            failures = zip(batch.column(REASON).to_pylist(), batch.column("value").to_pylist(), strict=True)
            exact = [_exact(reason, value, schemas.get(reason)) for reason, value in failures]
            place = batch.schema.get_field_index(REASON)
            yield batch.set_column(place, batch.schema.field(place), pa.array(exact, batch.schema.field(place).type))


def _exact(reason: str, value: bytes, schema: str | None) -> str:
    why = None if schema is None else why_unreadable(schema, value[HEADER.size :])
    return reason if why is None else f"{reason}: {why}"
