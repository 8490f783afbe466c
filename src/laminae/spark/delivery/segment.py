"""What a sink is given: the rows or the changes of one committed epoch as Parquet files, never changed again."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from laminae.engine.changelogs import WeightedBy


class Holds(Enum):
    """What the files of a segment are."""

    ROWS = "rows that the epoch added"
    SNAPSHOT = "the rows that are there after the epoch"
    CHANGES = "a changelog, with its own columns in front"
    TAKEN_BACK = "a changelog that takes back every row of a view that was replaced"


@dataclass(frozen=True, slots=True)
class Segment:
    """`path` is the directory, `schema` the columns as the epoch's schema version has them.

    Its files are all of the directory, or these `parts` alone where others lie beside them. `time` is that of rows
    that bring none along, `key` the columns that identify a row, if any do. `weighted_by` is there for a source that
    takes rows back, and says what each does. Without `shows_old` the old rows of updates are not delivered. `former` is
    what comes first in the same epoch, in the shape that a replaced view had.
    """

    epoch: int
    path: str
    schema: pa.Schema
    rows: int
    holds: Holds = Holds.ROWS
    parts: tuple[str, ...] | None = None
    time: datetime | None = None
    key: tuple[str, ...] | None = None
    weighted_by: WeightedBy | None = None
    shows_old: bool = True
    former: Segment | None = None

    @property
    def has_changes(self) -> bool:
        return self.holds in (Holds.CHANGES, Holds.TAKEN_BACK)

    def shapes(self) -> tuple[Segment, ...]:
        """What is delivered one behind the other, each with columns of its own."""
        return (self,) if self.former is None else (self.former, replace(self, former=None))

    def files(self) -> list[str]:
        """In one order, so that the number of each part is the same at every delivery: as listed, else by name."""
        names = self.parts if self.parts is not None else self._listed()
        return [os.path.join(self.path, name) for name in names]

    def _listed(self) -> list[str]:
        return sorted(name for name in os.listdir(self.path) if name.endswith(".parquet") and name[0] not in "._")


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
