"""What a sink is given: the rows of one committed epoch as a directory of Parquet files, never changed again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Segment:
    """`path` is the directory, `schema` the columns as the epoch's schema version has them."""

    epoch: int
    path: str
    schema: pa.Schema
    rows: int

    def files(self) -> list[str]:
        """By name: the order, and with it the number of each part, is the same at every delivery."""
        names = sorted(name for name in os.listdir(self.path) if name.endswith(".parquet") and name[0] not in "._")
        return [os.path.join(self.path, name) for name in names]


def batches(file: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one file, with the types that the schema gives to the columns it knows."""
    types = {field.name: field.type for field in schema}
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
        for batch in parquet.iter_batches():
            columns = [
                _cast(column, types.get(name, column.type))
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
