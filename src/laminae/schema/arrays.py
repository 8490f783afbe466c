"""Take nested Arrow arrays apart and put them together again around other children, without touching a row in Python.

Slices and NULL slots that still hold entries are normalised here, so callers see only the entries that exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.schema.types import is_variant

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
    """Entries of the non-NULL rows of a list, list view, fixed-size list or map array."""
    children = [array.keys, array.items] if pa.types.is_map(array.type) else [_values(array)]
    starts, lengths = _places(array)
    valid = np.asarray(array.is_valid()) if array.null_count else None
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    in_order = len(starts) == 0 or bool((starts[lengths > 0] == starts[0] + offsets[:-1][lengths > 0]).all())
    if in_order:
        begin = int(starts[0]) if len(starts) else 0
        return Entries(offsets, [child.slice(begin, int(offsets[-1])) for child in children])
    rows = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Entries(offsets, [child.take(pa.array(rows)) for child in children])


def list_like(array: pa.Array, entries: Entries, children: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """An array of the list or map type `kind` with the rows of `array` around new children."""
    mask = array.is_null() if array.null_count else None
    if pa.types.is_fixed_size_list(kind):
        if not kind.list_size:
            return _choice([], kind, array)
        return pa.FixedSizeListArray.from_arrays(_spread(array, children[0], kind.list_size), type=kind, mask=mask)
    if pa.types.is_map(kind):
        offsets = pa.array(entries.offsets.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, children[0], children[1], type=kind, mask=mask)
    make, width = next((make, width) for test, make, width in LISTS if test(kind))
    offsets = entries.offsets.astype(width)
    if _is_view(kind):
        places = pa.array(offsets[:-1]), pa.array(np.diff(offsets))
        return make(*places, children[0], type=kind, mask=mask)
    return make(pa.array(offsets), children[0], type=kind, mask=mask)


LISTS = (
    (pa.types.is_list, pa.ListArray.from_arrays, np.int32),
    (pa.types.is_large_list, pa.LargeListArray.from_arrays, np.int64),
    (pa.types.is_list_view, pa.ListViewArray.from_arrays, np.int32),
    (pa.types.is_large_list_view, pa.LargeListViewArray.from_arrays, np.int64),
)


def null_count(array: pa.Array) -> int:
    """NULLs as a reader sees them: a dictionary or a run may stand for NULL without a mark of its own."""
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        return int(array.dictionary_decode().null_count)
    if pa.types.is_run_end_encoded(array.type):
        return int(pc.run_end_decode(array).null_count)
    return int(array.null_count)


def is_same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays of floats hold the same numbers."""
    one, other = one.cast(pa.float64()), other.cast(pa.float64())
    both_nan = pc.and_(pc.is_nan(one), pc.is_nan(other))
    return bool(pc.all(pc.or_(pc.equal(one, other), both_nan)).as_py() is not False)


def struct_like(array: pa.Array, children: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """A struct array of type `kind` that is NULL where `array` is."""
    if not children:
        return _choice({}, kind, array)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns of `schema` in its types.

    A column that has its type stays: Arrow's cast refuses a NULL whose fields are NOT NULL, as those of a VARIANT are.
    """
    columns = [_as_type(table.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)


def with_whole_variants(table: pa.Table) -> pa.Table:
    """The table with empty bytes in the fields of each VARIANT that is NULL.

    Spark sends NULL in them, and pyarrow writes no file with a NULL in a NOT NULL field, even where nobody sees it.
    """
    columns = [
        pa.chunked_array([_whole(chunk) for chunk in column.chunks], column.type)
        if _has_variant(column.type)
        else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _whole(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_variant(kind):
        return array
    if is_variant(kind):
        return struct_like(array, [child.fill_null(b"") for child in _fields(array)], kind)
    if pa.types.is_struct(kind):
        return struct_like(array, [_whole(child) for child in _fields(array)], kind)
    entries = entries_of(array)
    return list_like(array, entries, [_whole(child) for child in entries.children], kind)


def _fields(array: pa.Array) -> list[pa.Array]:
    return [array.field(place) for place in range(array.type.num_fields)]


def _has_variant(kind: pa.DataType) -> bool:
    if is_variant(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_variant(kind.field(place).type) for place in range(kind.num_fields))


def repeated(scalar: pa.Scalar, rows: int) -> pa.Array:
    """`pa.repeat` for every type: it knows no struct without fields."""
    if pa.types.is_nested(scalar.type):
        return pa.array([scalar.as_py()], scalar.type).take(pa.array(np.zeros(rows, dtype=np.int64)))
    return pa.repeat(scalar, rows)


def _choice(empty: object, kind: pa.DataType, array: pa.Array) -> pa.Array:
    """`empty` in every row, NULL where `array` is: for types that have no entries to build from."""
    return pa.array([empty, None], kind).take(array.is_null().cast(pa.int8()))


def _values(array: pa.Array) -> pa.Array:
    # Arrow divides by the size of a fixed-size list to find its values.
    is_empty = pa.types.is_fixed_size_list(array.type) and not array.type.list_size
    return pa.nulls(0, array.type.value_type) if is_empty else array.values


def _places(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where in its values each row begins, and how many it has."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return (np.arange(len(array), dtype=np.int64) + array.offset) * size, np.full(len(array), size, dtype=np.int64)
    offsets = np.asarray(array.offsets, dtype=np.int64)
    if _is_view(array.type):
        return offsets, np.asarray(array.sizes, dtype=np.int64)
    return offsets[:-1], np.diff(offsets)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _spread(array: pa.Array, values: pa.Array, size: int) -> pa.Array:
    """Values of the non-NULL rows, with room again for those that are NULL."""
    if not array.null_count:
        return values
    valid = np.repeat(np.asarray(array.is_valid()), size)
    places = np.where(valid, np.cumsum(valid) - 1, 0)
    return values.take(pa.array(places, mask=~valid))
