"""One epoch's delta for one shard, its rows gathered into groups: sums that the JVM made, and rows with values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.cluster import clusters
from laminae.trace.lookup import Wanted
from laminae.trace.spec import HASH, WEIGHT, stored_type
from laminae.trace.values import gathered, integers
from laminae.views.kernels.aggregates import SLOT, Aggregate
from laminae.zset.wide_values import of_decimals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.trace.manifest import RunEntry
    from laminae.trace.store import RunStore
    from laminae.zset.wide import Int64s, WideInts

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
        found = self.table.column(name)
        return gathered(found, stored_type(found.type))

    def sums(self, name: str) -> Int64s:
        """An int64 column of the linear rows, added up for each group."""
        rows, column = self.rows(0), integers(self.column(name))
        members = self.members if rows is None else self.members[rows]
        found = np.zeros(len(self), dtype=np.int64)
        np.add.at(found, members, column if rows is None else column[rows])
        return found

    def decimal_sums(self, name: str) -> WideInts:
        rows, wide = self.rows(0), of_decimals(self.column(name))
        if rows is not None:
            wide = wide.take(rows)
        return wide.sum_groups(self.members if rows is None else self.members[rows], len(self))

    def rows(self, slot: int) -> Int64s | None:
        """The rows of a slot, slot 0 being the linear ones; None for all of them."""
        if self.slots is None:
            return None if slot == 0 else np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.slots == slot)

    def valued(self, slot: int, names: Sequence[str]) -> tuple[Int64s, list[pa.Array], Int64s]:
        """Groups, these columns, and weights of the rows of one slot."""
        rows = self.rows(slot)
        places = np.arange(len(self.members)) if rows is None else rows
        columns = [self.column(name).take(pa.array(places)) for name in names] if len(places) else []
        return self.members[places], columns, integers(self.column(WEIGHT))[places]


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """What one accumulator adds an epoch to: the groups' rows before it, the delta, and the runs of its values."""

    number: int
    old: Mapping[str, pa.Array]
    delta: Delta
    store: RunStore
    runs: tuple[RunEntry, ...]


def delta_of(aggregate: Aggregate, table: pa.Table) -> Delta:
    """The delta's rows in their groups. A table without `_slot` has linear rows only."""
    slots = integers(gathered(table.column(SLOT), pa.int64())) if SLOT in table.column_names else None
    if aggregate.is_global:
        groups = Wanted(np.full(1, GLOBAL_HASH, dtype=np.int64), ())
        return Delta(table, groups, np.zeros(table.num_rows, dtype=np.int64), slots)
    hashes = integers(gathered(table.column(HASH), pa.int64()))
    keys = tuple(gathered(table.column(field.name), stored_type(field.type)) for field in aggregate.keys)
    found = clusters(hashes, keys)
    return Delta(table, Wanted(hashes, keys).take(found.firsts), found.members(), slots)
