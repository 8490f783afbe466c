"""Compare whole columns as SQL keys compare: NULL equals NULL, NaN equals NaN and is the largest, -0.0 equals 0.0.

Values of fixed width are compared by their levels, text by Arrow, nested values part by part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.schema.arrays import entries_of
from laminae.trace.levels import is_text, levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide import Bools, Int64s


def ranks(array: pa.Array) -> list[Int64s]:
    """As `levels`, for text too; comparable within this one array only. NULL is the smallest."""
    if is_text(array.type):
        ranked = np.asarray(pc.rank(array, tiebreaker="dense")).astype(np.int64)
        return [np.where(_valid(array), ranked, 0)] if array.null_count else [ranked]
    found = levels(array)
    return (
        [_valid(array).astype(np.int64), *(np.where(_valid(array), x, 0) for x in found)] if array.null_count else found
    )


def rank_of(values: pa.Array) -> Int64s:
    """One number for each value, in the order of the values."""
    found = ranks(values)
    if len(found) == 1:
        return found[0]
    order = np.lexsort(tuple(reversed(found)))
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = np.logical_or.reduce([level[order][1:] != level[order][:-1] for level in found])
    result = np.empty(len(values), dtype=np.int64)
    result[order] = np.cumsum(changed)
    return result


def same(left: pa.Array, right: pa.Array) -> Bools:
    """Row by row: are these the same value?"""
    kind = left.type
    if pa.types.is_struct(kind):
        equal = all_same(left.flatten(), right.flatten(), len(left))
    elif pa.types.is_nested(kind):
        equal = _same_lists(left, right)
    elif is_text(kind):
        equal = _mask(pc.equal(left, right))
    else:
        first, *others = zip(levels(left), levels(right), strict=True)
        equal = first[0] == first[1]
        for one, other in others:
            equal &= one == other
    if not (left.null_count or right.null_count):
        return equal
    a, b = _valid(left), _valid(right)
    return np.asarray((equal & a & b) | ~(a | b))


def all_same(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: int) -> Bools:
    """Row by row: are all columns the same? True when there are none."""
    equal = np.ones(rows, dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        equal &= same(a, b)
    return equal


def before(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: int) -> Bools:
    """Row by row: is the left tuple smaller than the right one? None of the values may be NULL."""
    less, tied = np.zeros(rows, dtype=np.bool_), np.ones(rows, dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        if is_text(a.type):
            less |= tied & _mask(pc.less(a, b))
            tied &= _mask(pc.equal(a, b))
            continue
        for x, y in zip(levels(a), levels(b), strict=True):
            less |= tied & (x < y)
            tied &= x == y
    return less


def codes(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """The same small number for rows that are the same in every column, other numbers for others."""
    found = np.zeros(rows, dtype=np.int64)
    for column in columns:
        for level in _code_levels(column):
            _, dense = np.unique(level, return_inverse=True)
            found = found * (int(dense.max(initial=0)) + 1) + dense
            found = np.unique(found, return_inverse=True)[1]
    return found


def gathered(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One array of the type that runs keep: decoded, cast and in one piece."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, whole.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return whole if whole.type == kind else whole.cast(kind)


def integers(array: pa.Array) -> Int64s:
    """An int64 column as numpy, 0 for NULL, without a copy where there is none."""
    return np.asarray(array.fill_null(0) if array.null_count else array)


def _code_levels(column: pa.Array) -> list[Int64s]:
    if is_text(column.type):
        encoded = column.dictionary_encode().indices
        return [integers(encoded.cast(pa.int64()).fill_null(-1))]
    valid = _valid(column)
    if pa.types.is_struct(column.type):
        found = [codes(column.flatten(), len(column))]
    elif pa.types.is_nested(column.type):
        found = [_list_codes(column)]
    else:
        found = levels(column)
    return [valid.astype(np.int64), *(np.where(valid, level, 0) for level in found)]


def _list_codes(column: pa.Array) -> Int64s:
    """The codes of a row's entries, side by side, are bytes that tell it from others."""
    entries = entries_of(column)
    parts = codes(entries.children, entries.count).astype(np.int64)
    places = entries.offsets.astype(np.int64) * parts.itemsize
    buffers = [None, pa.py_buffer(places), pa.py_buffer(parts)]
    texts = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    return integers(texts.dictionary_encode().indices.cast(pa.int64()))


def _same_lists(left: pa.Array, right: pa.Array) -> Bools:
    a, b = entries_of(left), entries_of(right)
    long, other = np.diff(a.offsets), np.diff(b.offsets)
    equal = np.asarray(long == other)
    rows = np.flatnonzero(equal & (long > 0))
    if not len(rows):
        return equal
    lengths = long[rows]
    starts = np.cumsum(lengths) - lengths
    within = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    mine = pa.array(np.repeat(a.offsets[rows], lengths) + within)
    yours = pa.array(np.repeat(b.offsets[rows], lengths) + within)
    taken = [child.take(mine) for child in a.children], [child.take(yours) for child in b.children]
    equal[rows] = np.logical_and.reduceat(all_same(*taken, len(within)), starts)
    return equal


def _valid(array: pa.Array) -> Bools:
    return np.asarray(array.is_valid())


def _mask(answer: pa.BooleanArray) -> Bools:
    return np.asarray(answer.fill_null(False) if answer.null_count else answer)
