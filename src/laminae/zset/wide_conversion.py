"""Convert wide integers to and from Python integers, Arrow decimals and their stored columns, with range checks.

Conversions do not check the range: call `fits_int64` or `fits_decimal` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.errors import ValueOverflow
from laminae.zset.wide_integers import LIMBS_OF_DECIMAL_SUM, LIMBS_OF_INT64_SUM, Bools, Int64s, WideInts, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

_LIMB = 1 << 64
_PART_BITS = 32


def of_ints(values: Sequence[int], limbs: int = LIMBS_OF_INT64_SUM) -> WideInts:
    """From Python integers, each modulo 2**(64 * limbs)."""
    columns = [[(value >> (64 * limb)) % _LIMB for value in values] for limb in range(limbs)]
    return WideInts(np.array(columns, dtype=np.uint64).reshape(limbs, len(values)))


def to_ints(wide: WideInts) -> list[int]:
    integers: list[int] = wide.top.tolist()
    for limb in wide.limbs[-2::-1]:
        integers = [high * _LIMB + low for high, low in zip(integers, limb.tolist(), strict=True)]
    return integers


def of_decimals(array: pa.Array, limbs: int = LIMBS_OF_DECIMAL_SUM) -> WideInts:
    """The unscaled values of a decimal128 array, 0 for NULL."""
    if not len(array):
        return WideInts.zeros(0, limbs)
    filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
    pairs = np.frombuffer(filled.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    place = filled.offset
    values = np.ascontiguousarray(pairs[place : place + len(filled)].T)
    return WideInts(values).widened(limbs)


def to_decimals(wide: WideInts, type: pa.DataType, valid: Bools | None = None) -> pa.Array:  # noqa: A002
    """Unscaled values as an array of this decimal128 type, NULL where not `valid`. They must fit it."""
    values = np.ascontiguousarray(wide.widened(2).limbs[:2].T)
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type, len(wide), [mask, pa.py_buffer(values)])


def of_columns(columns: Sequence[pa.Array | pa.ChunkedArray]) -> WideInts:
    """The inverse of `to_columns`."""
    limbs = [np.asarray(column, dtype=np.int64).view(np.uint64) for column in columns]
    return WideInts(np.stack(limbs))


def to_columns(wide: WideInts) -> list[pa.Array]:
    """One int64 column per limb, the least significant first: the form that traces store."""
    return [pa.array(signed(limb)) for limb in wide.limbs]


def of_parts(parts: Sequence[Int64s], limbs: int = LIMBS_OF_INT64_SUM) -> WideInts:
    """The sum of parts[i] * 2 ** (32 * i), as the JVM delivers sums that it keeps in signed 32-bit parts."""
    total = WideInts.of_int64(parts[-1], limbs)
    bits = np.full(len(parts[-1]), _PART_BITS, dtype=np.int64)
    for part in reversed(parts[:-1]):
        total = total.shifted(bits) + WideInts.of_int64(part, limbs)
    return total


def fits_int64(wide: WideInts) -> Bools:
    sign = (signed(wide.limbs[0]) >> 63).view(np.uint64)
    return np.asarray((wide.limbs[1:] == sign).all(axis=0))


def fits_decimal(wide: WideInts, precision: int) -> Bools:
    """Whether the unscaled value has at most `precision` digits."""
    first_too_large = 10**precision
    low, high = (of_ints([bound], wide.width) for bound in (-first_too_large, first_too_large))
    if first_too_large >= 1 << (64 * wide.width - 1):
        return np.ones(len(wide), dtype=np.bool_)
    return low.less_than(wide) & wide.less_than(high)


def fits_type(wide: WideInts, kind: pa.DataType) -> Bools:
    """Whether the value fits a BIGINT, or, unscaled, this decimal type."""
    return fits_decimal(wide, kind.precision) if pa.types.is_decimal(kind) else fits_int64(wide)


def to_array(wide: WideInts, kind: pa.DataType, valid: Bools) -> pa.Array:
    """As BIGINTs or, unscaled, as decimals of this type; NULL where not `valid`."""
    return to_decimals(wide, kind, valid) if pa.types.is_decimal(kind) else pa.array(to_int64(wide), mask=~valid)


def check_fits(wide: WideInts, fits: Bools, aggregate: str, kind: pa.DataType) -> None:
    """Raise `ValueOverflow` for the first group whose total does not fit."""
    if bool(fits.all()):
        return
    group = int(np.argmin(fits))
    value = to_ints(wide.take(np.array([group])))[0]
    raise ValueOverflow(aggregate=aggregate, what=f"group {group}", value=value, type=kind)


def to_int64(wide: WideInts) -> Int64s:
    """The low 64 bits, which are the value where `fits_int64`."""
    return signed(wide.limbs[0])
