"""Which rows of a table are equal, as SQL has it: NULL equals NULL, NaN equals NaN, 0.0 equals -0.0, nested by parts.

Arrow groups what it can; lists and maps, which it cannot group, go through Python one by one.
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

    from laminae.zset.wide import Bools, Int64s

_PLACE = "place"


@dataclass(frozen=True)
class RowGroups:
    """Equal rows together: `order` holds the places of all rows, group after group, and `starts` where each begins.

    Groups come in the order of their first rows, and so do the rows of a group.
    """

    order: Int64s
    starts: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first(self) -> Int64s:
        """The place of the first row of each group."""
        return np.asarray(self.order[self.starts])

    @cached_property
    def numbers(self) -> Int64s:
        """The group of each row, counted from 0."""
        sizes = np.diff(np.append(self.starts, len(self.order)))
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = np.repeat(np.arange(len(self.starts)), sizes)
        return found


def row_groups(table: pa.Table, names: Sequence[str]) -> RowGroups:
    """Group the rows by these columns; without columns all rows are equal."""
    places = np.arange(table.num_rows, dtype=np.int64)
    keys = [key for name in names for key in _keys(table.column(name))]
    if not keys or not table.num_rows:
        return RowGroups(places, places[:1])
    labels = [str(i) for i in range(len(keys))]
    keyed = pa.table([*keys, pa.array(places)], [*labels, _PLACE])
    found = keyed.group_by(labels, use_threads=False).aggregate([(_PLACE, "list")])
    lists = found.column(f"{_PLACE}_list").combine_chunks()
    sizes = np.asarray(pc.list_value_length(lists), dtype=np.int64)
    return RowGroups(np.asarray(lists.flatten()), np.cumsum(sizes) - sizes)


def same_rows(left: pa.Table, right: pa.Table) -> Bools:
    """Row by row, whether the two are equal."""
    found = np.ones(left.num_rows, dtype=np.bool_)
    for name in left.column_names:
        for one, other in zip(_keys(left.column(name)), _keys(right.column(name)), strict=True):
            found &= _same(one, other)
    return found


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
    equal = pc.equal(one, other)
    if pa.types.is_floating(one.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))
    if equal.null_count:
        equal = pc.if_else(pc.is_null(equal), pc.and_(pc.is_null(one), pc.is_null(other)), equal)
    return np.asarray(equal, dtype=np.bool_)


def _keys(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Columns that Arrow can group by and that are equal exactly when this one is."""
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
    """Each distinct value by its number."""
    numbers: dict[Hashable, int] = {}
    found = [numbers.setdefault(canonical(value), len(numbers)) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(found, pa.int64())])
