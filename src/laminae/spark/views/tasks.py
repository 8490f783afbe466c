"""What runs inside Spark's tasks, over the Arrow batches of one shard: the kernels, and the changelog they lead to.

A task writes under names nobody else uses and says what it wrote in a note. Nothing exists until the driver commits it.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from laminae.errors import LaminaeError
from laminae.spark.views.notes import NOTE, ChangesNote, FailureNote, LateNote, StateNote, note_text
from laminae.spark.workers import settle_worker
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.trace.values import all_same
from laminae.views.kernels import aggregate as aggregate_kernel
from laminae.views.kernels.changelog import OP, OPERATIONS, WEIGHT
from laminae.views.kernels.forgetting import without

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from laminae.spark.views.notes import Note
    from laminae.views.kernels.aggregates import Aggregate
    from laminae.views.kernels.step import Step
    from laminae.zset.wide import Bools

SHARD = "_shard"
TIMESTAMP = "_timestamp"
_INSERT, _DELETE, _BEFORE, _AFTER = range(4)


@dataclass(frozen=True, slots=True)
class Held:
    """What a view keeps back of its changes: rows of windows that end after a time, or all of them."""

    after: int | None = None
    everything: bool = False


HELD_NOT = Held()


@dataclass(frozen=True, slots=True)
class Closed:
    """Windows that end at or before `until`, by the column `end`, take nothing any more."""

    end: str
    until: int


@dataclass(frozen=True, slots=True, eq=False)
class Emit:
    """Writes a view's changes to a file below `directory` and passes them on if somebody reads them in this epoch.

    `columns` are those of the rows that come, under the names and in the order of the view. `key` are names of the
    view; rows of one key come next to each other, the old one first. `time` is their time in microseconds unless they
    have a window, whose end is then the column `window_end`.
    """

    owner: int
    home: str
    directory: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] | None
    time: int
    window_end: str | None = None
    held: Held = HELD_NOT
    passes_on: bool = True

    def __call__(self, rows: pa.Table, part: int) -> tuple[pa.Table, list[Note]]:
        """Data rows with `_weight` in; with `_op` and the view's columns out. `part` puts an epoch's files in order."""
        rows = self._released(rows)
        found = pa.table(
            [rows.column(source) for _, source in self.columns], names=[name for name, _ in self.columns]
        ).combine_chunks()
        weights = rows.column(WEIGHT).combine_chunks()
        times = self._times(rows)
        codes, kept = self._operations(found, np.asarray(weights))
        made = found.add_column(0, WEIGHT, weights).add_column(0, OP, OPERATIONS.take(pa.array(codes)))
        whole = made.add_column(2, TIMESTAMP, times)
        if not kept.all():
            whole = whole.filter(pa.array(kept))
        if not whole.num_rows:
            return whole, []
        file = f"{self.directory}/{part:05}-{uuid.uuid4().hex}.parquet"
        write_durably(os.path.join(self.home, file), whole)
        return whole if self.passes_on else whole.slice(0, 0), [ChangesNote(self.owner, file, whole.num_rows)]

    def _released(self, rows: pa.Table) -> pa.Table:
        """What is not held back."""
        if self.held.everything:
            return rows.slice(0, 0)
        if self.held.after is None or self.window_end is None:
            return rows
        return rows.filter(pc.less_equal(microseconds(rows.column(self.window_end)), self.held.after))

    def _operations(self, rows: pa.Table, weights: np.ndarray) -> tuple[np.ndarray, Bools]:
        """Neighbours of one key, -1 and then +1, are an update, or nothing at all when the rows are the same."""
        codes = np.where(weights > 0, _INSERT, _DELETE)
        kept = weights != 0
        if self.key is None or rows.num_rows < 2:
            return codes, kept
        first, second = rows.slice(0, rows.num_rows - 1), rows.slice(1)
        pairs = (weights[:-1] == -1) & (weights[1:] == 1) & _same(first, second, self.key)
        places = np.flatnonzero(pairs)
        codes[places], codes[places + 1] = _BEFORE, _AFTER
        others = [name for name in rows.column_names if name not in self.key]
        idle = places[_same(first, second, others)[places]]
        kept[idle] = kept[idle + 1] = False
        return codes, kept

    def _times(self, rows: pa.Table) -> pa.Array:
        kind = pa.timestamp("us", tz="UTC")
        if self.window_end is None:
            return pa.repeat(pa.scalar(self.time, kind), rows.num_rows)
        # The last instant that belongs to the window, in milliseconds as event times are.
        ends = microseconds(rows.column(self.window_end)).combine_chunks()
        return pc.subtract(ends, 1000).cast(pa.timestamp("us")).cast(kind)


@dataclass(frozen=True, slots=True, eq=False)
class AggregateShard:
    """One GROUP BY (or DISTINCT) of a view, over the deltas of its shards; `manifests` are those before the epoch."""

    aggregate: Aggregate
    owner: int
    operator: str
    home: str
    manifests: Mapping[int, str]
    emit: Emit | None = None
    closed: Closed | None = None
    fresh: frozenset[str] = frozenset()
    """Accumulators that begin with this delta, whatever older runs hold under their names."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        data, notes = split(batches)
        if data is not None and data.num_rows:
            shard = own_shard(data)
            if self.closed is not None:
                came = data.num_rows
                data = data.filter(pc.greater(microseconds(data.column(self.closed.end)), self.closed.until))
                if data.num_rows != came:
                    notes.append(note_text(LateNote(self.owner)))
            try:
                step, note = self._step(shard, data.drop_columns([SHARD]))
            except LaminaeError as problem:
                notes.append(note_text(FailureNote(self.owner, problem.code, str(problem))))
            else:
                notes.append(note_text(note))
                yield from self._out(step, shard)
        yield from note_rows(notes, self.schema())

    def _step(self, shard: int, data: pa.Table) -> tuple[Step, StateNote]:
        found = self.manifests.get(shard)
        store = RunStore.at(self.home, f"state/{self.owner}/{self.operator}/{shard}")
        before = Manifest() if found is None else Manifest.from_json(found)
        if self.fresh:
            before = without(self.aggregate, self.fresh, before, store)
        step = aggregate_kernel.step(self.aggregate, data, before, store)
        counts = step.counts
        told = (counts.anomalies, counts.recovered, counts.dropped)
        return step, StateNote(self.owner, self.operator, shard, step.manifest.to_json(), *told)

    def _out(self, step: Step, shard: int) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches([step.changes])
        written: list[Note] = []
        if self.emit is not None:
            rows, written = self.emit(rows, shard)
        yield from with_notes(rows, self.schema())
        yield from note_rows(map(note_text, written), self.schema())

    def schema(self) -> pa.Schema:
        if self.emit is None:
            return out_schema(self.aggregate.fields)
        types = {field.name: field for field in self.aggregate.fields}
        return out_schema([types[source].with_name(name) for name, source in self.emit.columns], timed=True)


@dataclass(frozen=True, slots=True, eq=False)
class ShardRows:
    """The rows that an operator shows in this state, shard by shard; the batches that come in name the shards."""

    aggregate: Aggregate
    owner: int
    operator: str
    home: str
    manifests: Mapping[int, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self.schema()
        for shard in (shard for batch in batches for shard in batch.column(0).to_pylist()):
            if shard in self.manifests:
                store = RunStore.at(self.home)
                for found in aggregate_kernel.rows(self.aggregate, Manifest.from_json(self.manifests[shard]), store):
                    yield pa.Table.from_batches([found]).cast(schema).combine_chunks().to_batches()[0]

    def schema(self) -> pa.Schema:
        return pa.schema([field.with_nullable(True) for field in self.aggregate.fields])


@dataclass(frozen=True, slots=True, eq=False)
class EmitStage:
    """An Emit of its own, behind projections that Spark computed."""

    emit: Emit
    fields: tuple[pa.Field, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        data, notes = split(batches)
        schema = out_schema([field for field in self.fields if field.name in dict(self.emit.columns)], timed=True)
        if data is not None and data.num_rows:
            context = TaskContext.get()
            rows, written = self.emit(data, 0 if context is None else context.partitionId())
            yield from with_notes(rows, schema)
            notes += map(note_text, written)
        yield from note_rows(notes, schema)


def microseconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("us", tz=times.type.tz)).cast(pa.int64())


def split(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table | None, list[str]]:
    """The data, and the notes that came along."""
    settle_worker()
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return None, []
    whole = pa.Table.from_batches(found)
    if NOTE not in whole.column_names:
        return whole, []
    notes = whole.column(NOTE)
    return whole.filter(pc.is_null(notes)).drop_columns([NOTE]), notes.drop_null().to_pylist()


def own_shard(data: pa.Table) -> int:
    """The one that a task was given the rows of."""
    shards: list[int] = pc.unique(data.column(SHARD)).to_pylist()
    if len(shards) != 1:
        raise AssertionError(f"a task was given the shards {shards}")
    return shards[0]


def out_schema(fields: Iterable[pa.Field], timed: bool = False) -> pa.Schema:
    """What a stage gives on: changes, and notes beside them. So every column may be NULL."""
    own = [pa.field(OP, pa.string()), pa.field(WEIGHT, pa.int64())]
    time = [pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC"))] if timed else []
    return pa.schema([*own, *time, *(field.with_nullable(True) for field in fields), pa.field(NOTE, pa.string())])


def with_notes(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    whole = rows.append_column(NOTE, pa.nulls(rows.num_rows, pa.string()))
    yield from whole.select(schema.names).cast(schema).to_batches()


def note_rows(notes: Iterable[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    texts = list(notes)
    if texts:
        columns = [pa.array(texts) if f.name == NOTE else pa.nulls(len(texts), f.type) for f in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def write_durably(path: str, table: pa.Table) -> None:
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    with open(path, "xb") as file:
        pq.write_table(table, file, compression="snappy", use_dictionary=False, write_statistics=False)
        file.flush()
        os.fsync(file.fileno())
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _same(first: pa.Table, second: pa.Table, names: Sequence[str]) -> Bools:
    columns = [[table.column(name).combine_chunks() for name in names] for table in (first, second)]
    return all_same(columns[0], columns[1], first.num_rows)
