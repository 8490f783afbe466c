"""Writes the changes of an owner (a view or the table of a source) to its changelog file, inside a Spark task.

The file has a unique name and is reported to the driver. Nothing is visible until the driver commits it.
"""

from __future__ import annotations

import os
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from laminae import durable
from laminae.schema.arrays import as_schema, with_whole_variants
from laminae.spark.catalyst.types import stored_schema
from laminae.spark.tasks.task_reports import ChangesReport, HeldReport, data_rows
from laminae.views.kernels.changelog import DELETED, INSERTED, OPERATIONS, REPLACED, UPDATED
from laminae.zset.changelog import OP, TIMESTAMP, WEIGHT
from laminae.zset.comparison import all_same

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from types import TracebackType

    from laminae.spark.tasks.task_reports import TaskReport
    from laminae.zset.wide_integers import Bools

    Output = Generator[pa.RecordBatch, None, list[TaskReport]]


@dataclass(frozen=True, slots=True)
class HeldChanges:
    """The changes that a view does not emit yet: rows of windows that end after `after`, or all changes."""

    after: int | None = None
    everything: bool = False


NONE_HELD = HeldChanges()


@dataclass(frozen=True, slots=True, eq=False)
class Emit:
    """Writes changes to a file below `directory` and outputs them if another view reads them in this epoch.

    `columns` are pairs (name in the view, input column), in the order of the view. `key` has column names of the view;
    input rows of one key must be adjacent and in one slice, the old row first. `time` is the timestamp of the changes
    in microseconds, unless the rows have a window; then it is derived from the window's end, the column `window_end`.
    """

    owner: int
    home: str
    directory: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] | None
    time: int
    window_end: str | None = None
    held: HeldChanges = NONE_HELD
    passes_on: bool = True

    def write(self, slices: Iterable[pa.Table], part: int, output: pa.Schema) -> Output:
        """Takes data rows with `_weight`; yields the view's columns with `_op` as rows of the schema `output`.

        Returns the reports when all is written. `part` orders the files of an epoch. A view that emits only on timers
        keeps all its changes in a separate file until its timer fires.
        """
        path = f"{self.directory}/{part:05}-{uuid.uuid4().hex}.parquet"
        with ChangelogFile(os.path.join(self.home, path)) as file:
            for rows in slices:
                changes = self._changes(rows)
                if changes.num_rows:
                    file.write(changes)
                    if self.passes_on and not self.held.everything:
                        yield from data_rows(changes, output)
        if not file.rows:
            return []
        return [HeldReport(self.owner, path) if self.held.everything else ChangesReport(self.owner, path, file.rows)]

    def fields(self, inputs: Iterable[pa.Field]) -> list[pa.Field]:
        """The view's columns, of these input columns."""
        by_name = {field.name: field for field in inputs}
        return [by_name[source].with_name(name) for name, source in self.columns]

    def _changes(self, rows: pa.Table) -> pa.Table:
        rows = self._released(rows)
        data = pa.table(
            [rows.column(source) for _, source in self.columns], names=[name for name, _ in self.columns]
        ).combine_chunks()
        weights = rows.column(WEIGHT).combine_chunks()
        codes, is_change = self._operations(data, np.asarray(weights))
        changes = data.add_column(0, WEIGHT, weights).add_column(0, OP, OPERATIONS.take(pa.array(codes)))
        changes = changes.add_column(2, TIMESTAMP, self._times(rows))
        return changes if is_change.all() else changes.filter(pa.array(is_change))

    def _released(self, rows: pa.Table) -> pa.Table:
        """The rows that are emitted now."""
        if self.held.after is None or self.window_end is None:
            return rows
        return rows.filter(pc.less_equal(microseconds(rows.column(self.window_end)), self.held.after))

    def _operations(self, rows: pa.Table, weights: np.ndarray) -> tuple[np.ndarray, Bools]:
        """Adjacent rows of one key with weights -1 and +1 are an update; if the rows are equal, both are dropped."""
        codes = np.where(weights > 0, INSERTED, DELETED)
        is_change = weights != 0
        if self.key is None or rows.num_rows < 2:
            return codes, is_change
        first, second = rows.slice(0, rows.num_rows - 1), rows.slice(1)
        is_pair = (weights[:-1] == -1) & (weights[1:] == 1) & _same(first, second, self.key)
        pairs = np.flatnonzero(is_pair)
        codes[pairs], codes[pairs + 1] = REPLACED, UPDATED
        value_columns = [name for name in rows.column_names if name not in self.key]
        equal = pairs[_same(first, second, value_columns)[pairs]]
        is_change[equal] = is_change[equal + 1] = False
        return codes, is_change

    def _times(self, rows: pa.Table) -> pa.Array:
        kind = pa.timestamp("us", tz="UTC")
        if self.window_end is None:
            return pa.repeat(pa.scalar(self.time, kind), rows.num_rows)
        # The last instant inside the window, at the millisecond precision of event times.
        ends = microseconds(rows.column(self.window_end)).combine_chunks()
        return pc.subtract(ends, 1000).cast(pa.timestamp("us")).cast(kind)


class ChangelogFile:
    """A Parquet file that is created by its first rows and durable when the block ends. One row group per slice.

    When the block ends with an exception, the file is left as it is: no report names it, so it does not exist.
    """

    def __init__(self, path: str) -> None:
        self.path, self.rows = path, 0
        self._open = ExitStack()
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def write(self, rows: pa.Table) -> None:
        stored = with_whole_variants(as_schema(rows, stored_schema(rows.schema)))
        if self._writer is None:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            file = self._open.enter_context(durable.create(self.path))
            self._writer = pq.ParquetWriter(
                file, stored.schema, compression="snappy", use_dictionary=False, write_statistics=False
            )
            self._open.callback(self._writer.close)
        self._writer.write_table(stored)
        self.rows += rows.num_rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


def microseconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("us", tz=times.type.tz)).cast(pa.int64())


def _same(first: pa.Table, second: pa.Table, names: Sequence[str]) -> Bools:
    columns = [[table.column(name).combine_chunks() for name in names] for table in (first, second)]
    return all_same(columns[0], columns[1], first.num_rows)
