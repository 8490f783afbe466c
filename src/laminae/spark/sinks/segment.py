"""The unit of delivery: the rows or changes of one committed epoch as immutable Parquet files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from laminae.engine.changelogs import WeightedBy


class Holds(Enum):
    """What the files of a segment contain."""

    ROWS = "rows that the epoch added"
    SNAPSHOT = "the rows that are there after the epoch"
    CHANGES = "a changelog, with its own columns in front"
    TAKEN_BACK = "a changelog that takes back every row of a view that was replaced"


@dataclass(frozen=True, slots=True)
class Segment:
    """`path` is the directory, `schema` the columns in the epoch's schema version.

    The files are all Parquet files of the directory, or only `parts` if the directory is shared. `time` is the
    timestamp of rows that carry none, `key` the columns that identify a row, if any. `weighted_by` is set for a source
    with retractions and names the field that says whether a row is inserted or retracted. Without `shows_old` the -U
    rows of updates are not delivered. `former` is delivered first in the same epoch and has the columns of a replaced
    view. `relation_id` is the id of the source or view: a view that replaced another has a new id, so its columns are
    not those of the old view. `fills` are the values of added columns in rows from before the column, by column id;
    NULL if absent. `sent` are the schemas of earlier messages of the sink, for formats whose consumers resolve them
    with the newest schema.
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
    relation_id: int = 0
    fills: Mapping[str, pa.Scalar] = field(default_factory=dict)
    sent: tuple[pa.Schema, ...] = ()

    @property
    def has_changes(self) -> bool:
        return self.holds in (Holds.CHANGES, Holds.TAKEN_BACK)

    def shapes(self) -> tuple[Segment, ...]:
        """The segments to deliver in order, each with a single schema: `former` first, then this one."""
        return (self,) if self.former is None else (self.former, replace(self, former=None))

    def files(self) -> list[str]:
        """In a fixed order (of `parts`, else by name), so that a part has the same number at every delivery."""
        names = self.parts if self.parts is not None else self._listed()
        return [os.path.join(self.path, name) for name in names]

    def _listed(self) -> list[str]:
        return sorted(name for name in os.listdir(self.path) if name.endswith(".parquet") and name[0] not in "._")


def batches(file: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one file, cast to the schema's types; columns that the schema does not have keep theirs."""
    types = dict(zip(schema.names, schema.types, strict=True))
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
        for batch in parquet.iter_batches():
            columns = [
                _cast(column, types.get(name, column.type))
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
