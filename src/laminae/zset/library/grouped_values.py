"""MIN, MAX and COUNT(DISTINCT) of many groups at once: one weighted row per (group, value).

New rows are buffered until a result is requested or they outnumber the stored ones; then equal rows are summed and
zeros are removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.zset.changelog import WEIGHT
from laminae.zset.consolidate import consolidate
from laminae.zset.library.group_totals import group_count
from laminae.zset.library.grouped import Values, without_nulls

if TYPE_CHECKING:
    from laminae.zset.wide_integers import Int64s

GROUP, VALUE = "group", "value"


class GroupedValues:
    """The values of each group with their weights, without NULL."""

    __slots__ = ("_count", "_kept", "_waiting", "value_type")

    def __init__(self, value_type: pa.DataType) -> None:
        self.value_type = value_type
        self.reset()

    def reset(self) -> None:
        schema = pa.schema([(GROUP, pa.int64()), (VALUE, self.value_type), (WEIGHT, pa.int64())])
        self._kept: pa.Table = schema.empty_table()
        self._waiting: list[pa.Table] = []
        self._count = 0

    def update_many(self, groups: Int64s, values: Values, weights: Int64s | None = None) -> None:
        self._count = max(self._count, group_count(groups))
        groups, present, weights = without_nulls(groups, values, weights)
        row_weights = np.ones(len(groups), dtype=np.int64) if weights is None else weights
        array = present if isinstance(present, pa.Array) else pa.array(present)
        self._wait(pa.table([groups, array.cast(self.value_type), row_weights], schema=self._kept.schema))

    def merge(self, other: Self) -> None:
        self._count = max(self._count, other._count)
        self._wait(other.kept())

    def kept(self) -> pa.Table:
        """Rows (group, value, _weight), one per value of a group, none with weight 0."""
        if self._waiting:
            self._kept = consolidate(pa.concat_tables([self._kept, *self._waiting]))
            self._waiting = []
        return self._kept

    def present(self) -> pa.Table:
        """The values with a positive weight."""
        return self.kept().filter(pc.field(WEIGHT) > 0)

    def __len__(self) -> int:
        return self._count

    def _wait(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        if sum(table.num_rows for table in self._waiting) > max(self._kept.num_rows, 1 << 16):
            self.kept()


class GroupedDistinct(GroupedValues):
    """COUNT(DISTINCT x)."""

    __slots__ = ()

    def finalize(self) -> Int64s:
        return np.bincount(np.asarray(self.present().column(GROUP)), minlength=len(self)).astype(np.int64)


class GroupedMin(GroupedValues):
    """MIN(x): NULL if there are no values."""

    __slots__ = ()

    def finalize(self) -> pa.Array:
        present = self.present()
        # Arrow sorts NaN last in either direction, so MAX takes the other end instead of sorting descending.
        order = np.asarray(pc.sort_indices(present, sort_keys=[(GROUP, "ascending"), (VALUE, "ascending")]))
        groups = np.asarray(present.column(GROUP))[order]
        chosen = self._chosen(groups)
        places = np.full(len(self), -1, dtype=np.int64)
        places[groups[chosen]] = order[chosen]
        extremes = present.column(VALUE).combine_chunks().take(pa.array(places, mask=places < 0))
        # The result must not depend on whether 0.0 or -0.0 arrived first.
        return pc.add(extremes, pa.scalar(0.0, extremes.type)) if pa.types.is_floating(extremes.type) else extremes

    @staticmethod
    def _chosen(groups: Int64s) -> Int64s:
        return np.flatnonzero(np.diff(groups, prepend=-1))


class GroupedMax(GroupedMin):
    """MAX(x): NULL if there are no values; NaN is larger than any number."""

    __slots__ = ()

    @staticmethod
    def _chosen(groups: Int64s) -> Int64s:
        return np.flatnonzero(np.diff(groups, append=-1))
