"""Which rows of a table are equal in SQL: NULL equals NULL, NaN equals NaN, 0.0 equals -0.0, nested values by parts.

Arrow groups what it can; lists and maps, which it cannot group, are compared in Python one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.zset.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from laminae.zset.wide_integers import Int64s

_PLACE = "place"


@dataclass(frozen=True)
class RowGroups:
    """Groups of equal rows: `order` holds all row indexes, group by group, and `starts` where each group begins.

    Groups are ordered by their first row, and the rows of a group by index.
    """

    order: Int64s
    starts: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first(self) -> Int64s:
        """The index of the first row of each group."""
        return np.asarray(self.order[self.starts])

    @cached_property
    def numbers(self) -> Int64s:
        """The group number of each row, counted from 0."""
        sizes = np.diff(np.append(self.starts, len(self.order)))
        numbers = np.empty(len(self.order), dtype=np.int64)
        numbers[self.order] = np.repeat(np.arange(len(self.starts)), sizes)
        return numbers


def row_groups(table: pa.Table, names: Sequence[str]) -> RowGroups:
    """Group the rows by these columns; without columns, all rows are equal."""
    places = np.arange(table.num_rows, dtype=np.int64)
    keys = [key for name in names for key in _keys(table.column(name))]
    if not keys or not table.num_rows:
        return RowGroups(places, places[:1])
    labels = [str(i) for i in range(len(keys))]
    keyed = pa.table([*keys, pa.array(places)], [*labels, _PLACE])
    groups = keyed.group_by(labels, use_threads=False).aggregate([(_PLACE, "list")])
    lists = groups.column(f"{_PLACE}_list").combine_chunks()
    sizes = np.asarray(pc.list_value_length(lists), dtype=np.int64)
    return RowGroups(np.asarray(lists.flatten()), np.cumsum(sizes) - sizes)


def _keys(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Columns that Arrow can group by, and that are equal exactly when this column is."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        yield from _keys(column.cast(kind.value_type))
    elif pa.types.is_floating(kind):
        no_negative_zero = pc.add(column, pa.scalar(0.0, kind))
        yield pc.if_else(pc.is_nan(no_negative_zero), pa.scalar(float("nan"), kind), no_negative_zero)
    elif pa.types.is_struct(kind):
        yield pc.is_valid(column)
        for field in column.flatten():
            yield from _keys(field)
    elif pa.types.is_nested(kind):
        yield _numbered(column)
    else:
        yield column


def _numbered(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace each value by the number of its distinct value."""
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(canonical(value), len(numbers)) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(codes, pa.int64())])
