"""Compare whole columns as SQL compares keys: NULL equals NULL, NaN equals NaN and is the largest, -0.0 equals 0.0.

Fixed-width values are compared by their levels, text by Arrow, nested values part by part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.schema.arrays import entries_of
from laminae.schema.nesting import is_list
from laminae.zset.ordered_bits import has_levels, is_text, levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide_integers import Bools, Int64s


def ranks(array: pa.Array) -> list[Int64s]:
    """Like `levels`, but also for text; comparable only within this array. NULL is the smallest."""
    if is_text(array.type):
        ranked = np.asarray(pc.rank(array, tiebreaker="dense")).astype(np.int64)
        return [np.where(_valid(array), ranked, 0)] if array.null_count else [ranked]
    if pa.types.is_struct(array.type):
        column_levels = [level for child in array.flatten() for level in ranks(child)]
    elif is_list(array.type):
        column_levels = [_list_ranks(array)]
    else:
        column_levels = levels(array)
    return (
        [_valid(array).astype(np.int64), *(np.where(_valid(array), x, 0) for x in column_levels)]
        if array.null_count
        else column_levels
    )


def rank_of(values: pa.Array) -> Int64s:
    """One integer per value that sorts like the values."""
    columns = ranks(values)
    if len(columns) == 1:
        return columns[0]
    order = np.lexsort(tuple(reversed(columns)))
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = np.logical_or.reduce([level[order][1:] != level[order][:-1] for level in columns])
    result = np.empty(len(values), dtype=np.int64)
    result[order] = np.cumsum(changed)
    return result


def same(left: pa.Array, right: pa.Array) -> Bools:
    """Row by row: are the values equal?"""
    kind = left.type
    if pa.types.is_struct(kind):
        equal = all_same(left.flatten(), right.flatten(), len(left))
    elif pa.types.is_nested(kind):
        equal = _same_lists(left, right)
    elif is_text(kind) or not has_levels(kind):
        equal = _mask(pc.equal(left, right))
    else:
        first, *rest = zip(levels(left), levels(right), strict=True)
        equal = first[0] == first[1]
        for one, other in rest:
            equal &= one == other
    if not (left.null_count or right.null_count):
        return equal
    a, b = _valid(left), _valid(right)
    return np.asarray((equal & a & b) | ~(a | b))


def all_same(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: int) -> Bools:
    """Row by row: are the values equal in all columns? True when there are none."""
    equal = np.ones(rows, dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        equal &= same(a, b)
    return equal


def same_rows(left: pa.Table, right: pa.Table) -> Bools:
    """Row by row: are the rows of two tables with the same columns equal?"""
    columns = [[_whole(column) for column in table.columns] for table in (left, right)]
    return all_same(columns[0], columns[1], left.num_rows)


def before(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: int) -> Bools:
    """Row by row: is the left tuple smaller than the right one? None of the values may be NULL."""
    less, tied = np.zeros(rows, dtype=np.bool_), np.ones(rows, dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        if pa.types.is_nested(a.type):
            both = rank_of(pa.concat_arrays([a, b.cast(a.type)]))
            less |= tied & (both[:rows] < both[rows:])
            tied &= both[:rows] == both[rows:]
            continue
        if is_text(a.type):
            less |= tied & _mask(pc.less(a, b))
            tied &= _mask(pc.equal(a, b))
            continue
        for x, y in zip(levels(a), levels(b), strict=True):
            less |= tied & (x < y)
            tied &= x == y
    return less


def codes(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """A small integer per row, equal exactly for rows that are equal in every column."""
    row_codes = np.zeros(rows, dtype=np.int64)
    for column in columns:
        for level in _code_levels(column):
            _, dense = np.unique(level, return_inverse=True)
            row_codes = row_codes * (int(dense.max(initial=0)) + 1) + dense
            row_codes = np.unique(row_codes, return_inverse=True)[1]
    return row_codes


def gathered(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One contiguous array of the stored type: chunks combined, dictionary-decoded and cast."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, whole.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return whole if whole.type == kind else whole.cast(kind)


def integers(array: pa.Array) -> Int64s:
    """An int64 column as numpy, with 0 for NULL; no copy if there are no NULLs."""
    return np.asarray(array.fill_null(0) if array.null_count else array)


def _list_ranks(column: pa.Array) -> Int64s:
    """Ranks of lists, ordered by the first elements that differ: NULL first, and a prefix before longer lists.

    The ranks of the elements, each as eight big-endian bytes, form byte strings in that order.
    """
    entries = entries_of(column)
    (elements,) = entries.children
    # The sign bit is flipped, because bytes are compared as unsigned.
    parts = (rank_of(elements).view(np.uint64) ^ np.uint64(1 << 63)).astype(">u8")
    places = entries.offsets.astype(np.int64) * parts.itemsize
    buffers = [None, pa.py_buffer(places), pa.py_buffer(parts.tobytes())]
    texts = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    return np.asarray(pc.rank(texts, tiebreaker="dense")).astype(np.int64)


def _code_levels(column: pa.Array) -> list[Int64s]:
    if is_text(column.type):
        encoded = column.dictionary_encode().indices
        return [integers(encoded.cast(pa.int64()).fill_null(-1))]
    valid = _valid(column)
    if pa.types.is_struct(column.type):
        column_levels = [codes(column.flatten(), len(column))]
    elif pa.types.is_nested(column.type):
        column_levels = [_list_codes(column)]
    else:
        column_levels = levels(column)
    return [valid.astype(np.int64), *(np.where(valid, level, 0) for level in column_levels)]


def _list_codes(column: pa.Array) -> Int64s:
    """The concatenated codes of a row's entries form a byte string that identifies the list."""
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


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return gathered(column, column.type.value_type if pa.types.is_dictionary(column.type) else column.type)


def _valid(array: pa.Array) -> Bools:
    return np.asarray(array.is_valid())


def _mask(answer: pa.BooleanArray) -> Bools:
    return np.asarray(answer.fill_null(False) if answer.null_count else answer)
