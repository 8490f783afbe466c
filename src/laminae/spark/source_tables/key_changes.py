"""The kernel of a keyed table that is fed by Debezium events: truncations, ignored events, and changes of primary keys.

A primary key change is two events, usually in two shards: see `laminae.views.kernels.upsert.shard`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laminae.spark.formats.debezium.events import BETWEEN, IGNORED, INSERT, TRUNCATE, WITH_ROW
from laminae.views.kernels.step import Counts, Input, Step
from laminae.views.kernels.upsert import kernel as upsert
from laminae.views.kernels.upsert.event_order import in_log_order
from laminae.views.kernels.upsert.keyed_table import AWAITS, KEPT, MOVES, SEQUENCE, KeyedTable, keyed_traces
from laminae.views.kernels.upsert.shard import KeyedShard
from laminae.zset.comparison import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from laminae.trace.manifest import Manifest
    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore
    from laminae.views.kernels.step import ShardState
    from laminae.zset.wide_integers import Int64s

EVENT_OP = "_event_op"


@dataclass(frozen=True, slots=True, eq=False)
class DebeziumKernel:
    """A keyed table as a `Kernel` over Debezium events, which have `_event_op`, `_moves`, `_home` and `_kept`.

    `is_spread`: every shard gets the events of all shards. Otherwise a step that needs them computes nothing, and
    counts the rows that need them (`Counts.moved`).
    """

    table: KeyedTable
    is_spread: bool = False

    inputs = (Input("events"),)

    def step(self, deltas: tuple[pa.Table, ...], state: ShardState) -> Step:
        (delta,) = deltas
        events = _events(_with_lists(in_log_order(delta)))
        shard = KeyedShard(self.table, state.shard, state.all_manifests(), state.store)
        if not self.is_spread and (moved := shard.needs_all(events.rows)):
            return Step((), state.manifest, Counts(moved=moved))
        result = shard.step(events.rows, events.arrived, events.truncate_at, self.is_spread)
        return replace(result, counts=replace(result.counts, dropped=result.counts.dropped + events.ignored))

    def rows(self, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
        return upsert.rows(self.table, manifest, store)

    def traces(self, manifests: Iterable[Manifest]) -> list[TraceSpec]:
        return keyed_traces(self.table)


def _with_lists(data: pa.Table) -> pa.Table:
    """The events, with the text in `_kept` (positions of columns whose values are unavailable) parsed into a list."""
    numbers = pc.split_pattern(data.column(KEPT), BETWEEN).cast(pa.list_(pa.int32()))
    return data.set_column(data.schema.get_field_index(KEPT), KEPT, numbers)


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """The events that have a row, the number of ignored events, and the sequence of the last truncation.

    `arrived` are the sequences of inserts whose rows come from other keys, including those of other shards.
    """

    rows: pa.Table
    arrived: Int64s
    ignored: int
    truncate_at: pa.Scalar | None


def _events(data: pa.Table) -> _Events:
    ops = data.column(EVENT_OP)
    latest = pc.max(data.filter(pc.equal(ops, TRUNCATE)).column(SEQUENCE))
    ignored = pc.sum(pc.is_in(ops, pa.array(IGNORED))).as_py() or 0
    is_insert, has_header = pc.equal(ops, INSERT), data.column(MOVES)
    # An insert that lacks a value belongs to a row whose key changed, even if no header says so. The matching delete
    # can be read later only in a log with headers, since such a log has partitions.
    arrives = pc.and_(is_insert, pc.or_(has_header, pc.is_valid(data.column(KEPT))))
    data = data.set_column(data.schema.get_field_index(MOVES), MOVES, pc.or_(has_header, arrives))
    data = data.append_column(AWAITS, pc.and_(is_insert, has_header))
    rows = data.filter(pc.is_in(ops, pa.array(WITH_ROW))).drop_columns(EVENT_OP)
    arrived = integers(gathered(data.filter(arrives).column(SEQUENCE), pa.int64()))
    return _Events(rows, arrived, ignored, latest if latest.is_valid else None)
