"""The Spark task of every stateful operator: runs its kernel over one shard, emits the changes, reports the new state.

The rows of all inputs of an operator come through one shuffle by shard. A task writes files under unique names and
reports them. Nothing is visible until the driver commits it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from laminae.schema.arrays import as_schema
from laminae.spark.catalyst.python_worker import settle_worker
from laminae.spark.tasks.failures import HOME_ERRORS, MACHINE_ERRORS, failure_code, failure_text
from laminae.spark.tasks.task_reports import (
    FailureReport,
    LateReport,
    StateReport,
    data_rows,
    output_schema,
    report_rows,
    report_text,
    split_reports,
)
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.kernels.step import ShardState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from laminae.spark.tasks.emit import Emit, Output
    from laminae.spark.tasks.task_reports import TaskReport
    from laminae.views.kernels.step import Input, Kernel

SHARD = "__laminae_shard"
INPUT = "__laminae_input"
"""The tag column of an operator with several inputs: the index of the input that a row belongs to."""


@dataclass(frozen=True, slots=True)
class OperatorState:
    """Where the state of an operator is: its owner, its id, the home, and the manifests before the epoch by shard."""

    owner: int
    operator: str
    home: str
    manifests: Mapping[int, str]

    def of_shard(self, shard: int) -> ShardState:
        store = RunStore.at(self.home, f"state/{self.owner}/{self.operator}/{shard}")
        return ShardState(shard, self.manifests, store)


@dataclass(frozen=True, slots=True, eq=False)
class ShardTask:
    """Applies the deltas of an epoch to one shard of an operator. `fields` are the columns of the kernel's changes.

    `fails_alone`: an error is reported as a failure of the owner, and the other owners of the job continue.
    """

    kernel: Kernel
    state: OperatorState
    fields: tuple[pa.Field, ...]
    emit: Emit | None = None
    fails_alone: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _run(batches, self._computed, self.schema(), self.state.owner, self.fails_alone)

    def schema(self) -> pa.Schema:
        if self.emit is None:
            return output_schema(self.fields)
        return output_schema(self.emit.fields(self.fields), timed=True)

    def _computed(self, data: pa.Table) -> Output:
        shard = shard_of(data)
        step = self.kernel.step(deltas_of(data.drop_columns([SHARD]), self.kernel.inputs), self.state.of_shard(shard))
        counts, schema = step.counts, self.schema()
        slices = (pa.Table.from_batches([changes]) for changes in step.slices)
        written: list[TaskReport] = []
        if self.emit is not None:
            written = yield from self.emit.write(slices, shard, schema)
        else:
            for changes in slices:
                yield from data_rows(changes, schema)
        reported = (counts.anomalies, counts.recovered, counts.dropped, counts.moved)
        state = StateReport(self.state.owner, self.state.operator, shard, step.manifest.to_json(), *reported)
        late: list[TaskReport] = [LateReport(self.state.owner)] if counts.late else []
        return [*late, state, *written]


@dataclass(frozen=True, slots=True, eq=False)
class EmitTask:
    """Emits changes that Spark projects after the last stateful operator of a view, or without one."""

    emit: Emit
    fields: tuple[pa.Field, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _run(batches, self._computed, self.schema(), self.emit.owner, fails_alone=True)

    def schema(self) -> pa.Schema:
        return output_schema(self.emit.fields(self.fields), timed=True)

    def _computed(self, data: pa.Table) -> Output:
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        return (yield from self.emit.write([data], part, self.schema()))


@dataclass(frozen=True, slots=True, eq=False)
class ShardRows:
    """Reads the rows of an operator from its state, shard by shard; the input batches contain shard numbers.

    `schema` has the columns of the kernel's rows, in their order, under the names and types of the output.
    """

    kernel: Kernel
    state: OperatorState
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = RunStore.at(self.state.home)
        for shard in (shard for batch in batches for shard in batch.column(0).to_pylist()):
            if shard in self.state.manifests:
                manifest = Manifest.from_json(self.state.manifests[shard])
                for rows in self.kernel.rows(manifest, store):
                    named = pa.table(rows.columns, names=self.schema.names)
                    yield from as_schema(named, self.schema).to_batches()


def shard_of(data: pa.Table) -> int:
    """The shard of a task's rows; a task must have rows of exactly one shard."""
    shards: list[int] = pc.unique(data.column(SHARD)).to_pylist()
    if len(shards) != 1:
        raise AssertionError(f"a task was given the shards {shards}")
    return shards[0]


def deltas_of(data: pa.Table, inputs: tuple[Input, ...]) -> tuple[pa.Table, ...]:
    """The rows of each input. Rows of a single input have no tag and are not copied."""
    if len(inputs) == 1:
        return (data,)
    tags, rows = data.column(INPUT), data.drop_columns([INPUT])
    parts = [rows if task_input.columns is None else rows.select(task_input.columns) for task_input in inputs]
    return tuple(part.filter(pc.equal(tags, index)) for index, part in enumerate(parts))


def _run(
    batches: Iterable[pa.RecordBatch],
    compute: Callable[[pa.Table], Output],
    schema: pa.Schema,
    owner: int,
    fails_alone: bool,
) -> Iterator[pa.RecordBatch]:
    """The frame of a task: computes its data rows if it has any, and passes on the reports of upstream stages.

    A failed owner reports nothing else. Rows that it has already output do no harm: the views that read them wait.
    """
    settle_worker()
    data, reports = split_reports(batches)
    if data is not None:
        try:
            own = yield from compute(data)
            reports += map(report_text, own)
        except (*HOME_ERRORS, *MACHINE_ERRORS):
            raise
        except Exception as problem:
            if not fails_alone:
                raise
            reports.append(report_text(FailureReport(owner, failure_code(problem), failure_text(problem))))
    yield from report_rows(reports, schema)
