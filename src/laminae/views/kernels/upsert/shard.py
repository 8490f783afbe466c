"""One epoch of one shard of a table fed by Debezium events: which events it needs, and their changes.

A primary key change is two events, usually in two shards. If an event lacks a value, every shard gets all events of the
epoch, and each resolves them identically. That is rare, so the first attempt passes only the shard's own events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.manifest import Manifest
from laminae.views.kernels.step import Step, state_rows
from laminae.views.kernels.upsert import kernel as upsert
from laminae.views.kernels.upsert.key_changes import resolve
from laminae.views.kernels.upsert.keyed_table import DELETED, KEPT, MOVED, MOVES, ORDER, POSTPONED, TABLE, KeyedTable
from laminae.views.kernels.upsert.postponed import HOME, awaited, places_of, postponed_events, with_postponed
from laminae.views.kernels.upsert.truncation import floor_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.trace.run import Run
    from laminae.trace.store import RunStore
    from laminae.zset.wide_integers import Int64s


@dataclass(frozen=True, slots=True, eq=False)
class KeyedShard:
    """`manifests` are those of all shards before the epoch; `store` opens all their runs and writes this shard's."""

    table: KeyedTable
    number: int
    manifests: Mapping[int, Manifest]
    store: RunStore

    def needs_all(self, rows: pa.Table) -> int:
        """How many events of this shard need events of other shards. `rows` may hold events of all shards.

        These are inserts that lack values of rows under other keys, and deletes that postponed inserts wait for.
        """
        own = self._own(rows)
        is_insert = pc.and_not(own.column(MOVES), own.column(DELETED))
        lacking = pc.sum(pc.and_(is_insert, pc.is_valid(own.column(KEPT)))).as_py() or 0
        postponed = self._postponed(self.manifests, rows.schema)
        return int(lacking) + int(np.isin(places_of(own.filter(own.column(DELETED))), awaited(postponed)).sum())

    def step(self, rows: pa.Table, arrived: Int64s, truncate_at: pa.Scalar | None, is_spread: bool) -> Step:
        """`rows` are events with a row image: of this shard and, with `is_spread`, of all others.

        Each has its shard as `_home`. `arrived` and `truncate_at` are as for `upsert.step`.
        """
        manifest = self.manifests.get(self.number, Manifest())
        shards = self.manifests if is_spread else {self.number: manifest}
        postponed = self._postponed(shards, rows.schema)
        if not (is_spread or postponed.num_rows):
            return upsert.step(self.table, self._own(rows), manifest, self.store, truncate_at, arrived)
        arrived = np.append(arrived, places_of(postponed.filter(pc.and_not(postponed[MOVES], postponed[DELETED]))))
        events = pa.concat_tables([postponed, rows if is_spread else self._own(rows)])
        floor = floor_of(self.table, manifest, self.store, truncate_at)
        resolved = resolve(self.table, events, self._runs(shards, TABLE), self._runs(shards, MOVED), arrived, floor)
        done = upsert.step(self.table, self._own(resolved.ready), manifest, self.store, truncate_at, arrived)
        before, after = self._own(postponed), self._own(resolved.waiting)
        manifest = done.manifest
        if not after.drop_columns(ORDER).equals(before.drop_columns(ORDER)):
            manifest = with_postponed(self.table, manifest, self.store, after)
        counts = replace(
            done.counts,
            anomalies=done.counts.anomalies + len(awaited(after)),
            recovered=len(awaited(before)),
            dropped=done.counts.dropped + resolved.dropped.get(self.number, 0),
            state_rows=state_rows(manifest),
        )
        return Step(done.slices, manifest, counts)

    def _own(self, events: pa.Table) -> pa.Table:
        is_own = pc.equal(events.column(HOME), self.number)
        return events if pc.all(is_own).as_py() is not False else events.filter(is_own)

    def _postponed(self, shards: Mapping[int, Manifest], like: pa.Schema) -> pa.Table:
        """Postponed events of earlier epochs, ordered before all events of this one."""
        tables = [
            postponed_events(self.table, self._runs({shard: manifest}, POSTPONED), shard, like)
            for shard, manifest in shards.items()
            if manifest.runs(POSTPONED)
        ]
        events = pa.concat_tables([like.empty_table(), *tables])
        order = pa.array(np.arange(-events.num_rows, 0)).cast(like.field(ORDER).type)
        return events.set_column(like.get_field_index(ORDER), like.field(ORDER), order)

    def _runs(self, shards: Mapping[int, Manifest], trace: str) -> list[Run]:
        return [self.store.open(run) for manifest in shards.values() for run in manifest.runs(trace)]
