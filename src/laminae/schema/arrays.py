"""Take nested Arrow arrays apart and put them together again around other children, without touching a row in Python.

Slices and NULL slots that still hold entries are normalised here, so callers see only the entries that exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a list or map array: their children, side by side, and where each row's entries begin."""

    offsets: np.ndarray
    children: list[pa.Array]

    @property
    def count(self) -> int:
        return int(self.offsets[-1])


def entries_of(array: pa.Array) -> Entries:
    """Entries of the non-NULL rows of a list, fixed-size list or map array."""
    children = [array.keys, array.items] if pa.types.is_map(array.type) else [_values(array)]
    offsets = _offsets(array)
    starts, lengths = offsets[:-1], np.diff(offsets)
    valid = np.asarray(array.is_valid()) if array.null_count else None
    if valid is not None and lengths[~valid].any():
        lengths = np.where(valid, lengths, 0)
        rows = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
        children = [child.take(pa.array(rows + np.arange(len(rows)))) for child in children]
    else:
        begin, end = int(offsets[0]), int(offsets[-1])
        children = [child.slice(begin, end - begin) for child in children]
    return Entries(np.concatenate(([0], np.cumsum(lengths))), children)


def list_like(array: pa.Array, entries: Entries, children: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """An array of the list or map type `kind` with the rows of `array` around new children."""
    mask = array.is_null() if array.null_count else None
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(_spread(array, children[0], kind.list_size), type=kind, mask=mask)
    if pa.types.is_map(kind):
        offsets = pa.array(entries.offsets.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, children[0], children[1], type=kind, mask=mask)
    wide = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
    make, width, listed = (
        (pa.LargeListArray.from_arrays, np.int64, pa.large_list(kind.value_field))
        if wide
        else (pa.ListArray.from_arrays, np.int32, pa.list_(kind.value_field))
    )
    result = make(pa.array(entries.offsets.astype(width)), children[0], type=listed, mask=mask)
    return result if listed == kind else result.cast(kind)


def struct_like(array: pa.Array, children: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """A struct array of type `kind` that is NULL where `array` is."""
    if not children:
        return pa.array([{}, None], kind).take(array.is_null().cast(pa.int8()))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def repeated(scalar: pa.Scalar, rows: int) -> pa.Array:
    """`pa.repeat` for every type: it knows no struct without fields."""
    if pa.types.is_nested(scalar.type):
        return pa.array([scalar.as_py()], scalar.type).take(pa.array(np.zeros(rows, dtype=np.int64)))
    return pa.repeat(scalar, rows)


def _values(array: pa.Array) -> pa.Array:
    return pc.cast(array, pa.list_(array.type.value_field)).values if _is_view(array.type) else array.values


def _offsets(array: pa.Array) -> np.ndarray:
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        begins: np.ndarray = (np.arange(len(array) + 1, dtype=np.int64) + array.offset) * size
        return begins
    listed = pc.cast(array, pa.list_(array.type.value_field)) if _is_view(array.type) else array
    return np.asarray(listed.offsets, dtype=np.int64)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _spread(array: pa.Array, values: pa.Array, size: int) -> pa.Array:
    """Values of the non-NULL rows, with room again for those that are NULL."""
    if not array.null_count:
        return values
    valid = np.repeat(np.asarray(array.is_valid()), size)
    places = np.where(valid, np.cumsum(valid) - 1, 0)
    return values.take(pa.array(places, mask=~valid))
