"""The delta of one epoch for one shard, its rows assigned to groups: partial sums from the JVM, and value rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.cluster import clusters
from laminae.trace.lookup import Wanted
from laminae.trace.spec import HASH, WEIGHT, stored_type
from laminae.views.kernels.group_by.aggregates import SLOT, Aggregate
from laminae.zset.comparison import gathered, integers
from laminae.zset.wide_conversion import of_decimals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.trace.manifest import RunEntry
    from laminae.trace.store import RunStore
    from laminae.zset.wide_integers import Int64s, WideInts

GLOBAL_HASH = 0


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """`groups` are sorted by hash; `members[i]` is the group of row i."""

    table: pa.Table
    groups: Wanted
    members: Int64s
    slots: Int64s | None

    def __len__(self) -> int:
        return len(self.groups)

    def column(self, name: str) -> pa.Array:
        column = self.table.column(name)
        return gathered(column, stored_type(column.type))

    def sums(self, name: str) -> Int64s:
        """Sums of an int64 column over the linear rows of each group."""
        rows, column = self.rows(0), integers(self.column(name))
        members = self.members if rows is None else self.members[rows]
        sums = np.zeros(len(self), dtype=np.int64)
        np.add.at(sums, members, column if rows is None else column[rows])
        return sums

    def decimal_sums(self, name: str) -> WideInts:
        rows, wide = self.rows(0), of_decimals(self.column(name))
        if rows is not None:
            wide = wide.take(rows)
        return wide.sum_groups(self.members if rows is None else self.members[rows], len(self))

    def rows(self, slot: int) -> Int64s | None:
        """The row numbers of a slot; slot 0 holds the linear rows (partial sums). None means all rows."""
        if self.slots is None:
            return None if slot == 0 else np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.slots == slot)

    def valued(self, slot: int, names: Sequence[str]) -> tuple[Int64s, list[pa.Array], Int64s]:
        """For the rows of one slot: their groups, the named columns, and their weights."""
        rows = self.rows(slot)
        places = np.arange(len(self.members)) if rows is None else rows
        columns = [self.column(name).take(pa.array(places)) for name in names] if len(places) else []
        return self.members[places], columns, integers(self.column(WEIGHT))[places]


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The input of one accumulator in an epoch: the group rows before it, the delta, and the runs of its own trace."""

    number: int
    old: Mapping[str, pa.Array]
    delta: Delta
    store: RunStore
    runs: tuple[RunEntry, ...]


def delta_of(aggregate: Aggregate, table: pa.Table) -> Delta:
    """Assign the rows of a delta to groups. A table without a slot column has linear rows only."""
    slots = integers(gathered(table.column(SLOT), pa.int64())) if SLOT in table.column_names else None
    if aggregate.is_global:
        groups = Wanted(np.full(1, GLOBAL_HASH, dtype=np.int64), ())
        return Delta(table, groups, np.zeros(table.num_rows, dtype=np.int64), slots)
    hashes = integers(gathered(table.column(HASH), pa.int64()))
    keys = tuple(gathered(table.column(field.name), stored_type(field.type)) for field in aggregate.keys)
    by_key = clusters(hashes, keys)
    return Delta(table, Wanted(hashes, keys).take(by_key.firsts), by_key.members(), slots)
