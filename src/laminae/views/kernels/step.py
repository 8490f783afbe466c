"""The protocol of stateful operators: what a kernel reads, what one step returns, and how its rows are read back.

`laminae.spark.tasks.shard_task` runs every kernel in the same task. A kernel with several inputs, such as a join, gets
the delta of each of them in one step; a kernel with several traces has all of them in the manifest of its shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from laminae.trace.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of one step.

    `anomalies` counts keys that reached a negative weight and, for keyed tables, events that delete an unknown row or
    lack a value that is not known; `recovered` counts anomalies that were resolved. `dropped` events were not newer
    than the stored row. `late` rows belong to closed windows and were not applied. `state_rows` counts the rows of all
    runs, including superseded ones. `moved` counts rows that changed their key and lack values of the old row: nothing
    was computed, and the step must be run again with the events of all shards.
    """

    rows_in: int = 0
    rows_out: int = 0
    anomalies: int = 0
    recovered: int = 0
    dropped: int = 0
    late: int = 0
    moved: int = 0
    state_rows: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """`slices` are the changes: `_op`, `_weight` and the output columns; -U and +U of a key are adjacent, -U first.

    The slices may be computed while they are read, so that memory follows one slice and not all changes. Both rows of
    an update are in the same slice. The manifest is complete before the first slice is read.
    """

    slices: Iterable[pa.RecordBatch]
    manifest: Manifest
    counts: Counts

    @property
    def changes(self) -> pa.RecordBatch:
        """The changes of a kernel that returns them as one slice."""
        (changes,) = self.slices
        return changes


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a kernel. `columns` are those of its rows in the union of all inputs; None: all columns."""

    name: str
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ShardState:
    """The state of an operator before an epoch, for the task of one shard.

    `manifests` are the JSON texts of all shards. `store` opens the runs of all of them and writes runs of this shard.
    """

    shard: int
    manifests: Mapping[int, str]
    store: RunStore

    @property
    def manifest(self) -> Manifest:
        text = self.manifests.get(self.shard)
        return Manifest() if text is None else Manifest.from_json(text)

    def all_manifests(self) -> dict[int, Manifest]:
        return {shard: Manifest.from_json(text) for shard, text in self.manifests.items()}


class Kernel(Protocol):
    """A stateful operator. Its instances are sent to Spark tasks, so they can be pickled and hold no open files."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs; a row of their union has the index of its input in the tag column, unless there is only one."""
        ...

    def step(self, deltas: tuple[pa.Table, ...], state: ShardState) -> Step:
        """Apply one epoch to one shard. `deltas` has one table per input, in the order of `inputs`."""
        ...

    def rows(self, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
        """The current rows of the operator in one shard, in batches."""
        ...

    def traces(self, manifests: Iterable[Manifest]) -> list[TraceSpec]:
        """The traces that these manifests consist of. No file is read."""
        ...


def state_rows(manifest: Manifest) -> int:
    return sum(run.rows for _, runs in manifest.traces for run in runs)
