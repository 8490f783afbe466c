"""Map fixed-width values to order-preserving signed 64-bit integers ("levels"): one per value, or two for a decimal.

All NaNs are equal and larger than any other double; -0.0 equals 0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.errors import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.zset.wide_integers import Int64s

_SIGN = np.uint64(1 << 63)
_BELOW_SIGN = np.int64((1 << 63) - 1)


def _plain(kind: type[np.generic]) -> Callable[[pa.Array], list[Int64s]]:
    return lambda array: [_raw(array, kind)[:, 0].astype(np.int64, copy=False)]


def _unsigned(array: pa.Array) -> list[Int64s]:
    return [(_raw(array, np.uint64)[:, 0] ^ _SIGN).view(np.int64)]


def _decimal(array: pa.Array) -> list[Int64s]:
    halves = _raw(array, np.uint64, 2)
    return [halves[:, 1].view(np.int64), (halves[:, 0] ^ _SIGN).view(np.int64)]


def _float(array: pa.Array) -> list[Int64s]:
    """The bits of a double, inverted if negative, sort like the double; adding 0.0 turns -0.0 into 0.0."""
    values = _raw(array, np.float64)[:, 0]
    # A NULL slot may hold any bits, including some that raise a floating-point warning when added.
    with np.errstate(invalid="ignore"):
        bits = (values + 0.0).view(np.int64)
    ordered = bits ^ ((bits >> 63) & _BELOW_SIGN)
    return [np.where(np.isnan(values), _BELOW_SIGN, ordered)]


_LEVELS: dict[int, Callable[[pa.Array], list[Int64s]]] = {
    pa.lib.Type_NA: lambda array: [np.zeros(len(array), dtype=np.int64)],
    pa.lib.Type_BOOL: lambda array: _plain(np.int8)(array.cast(pa.int8())),
    pa.lib.Type_INT8: _plain(np.int8),
    pa.lib.Type_INT16: _plain(np.int16),
    pa.lib.Type_INT32: _plain(np.int32),
    pa.lib.Type_INT64: _plain(np.int64),
    pa.lib.Type_UINT8: _plain(np.uint8),
    pa.lib.Type_UINT16: _plain(np.uint16),
    pa.lib.Type_UINT32: _plain(np.uint32),
    pa.lib.Type_UINT64: _unsigned,
    pa.lib.Type_HALF_FLOAT: lambda array: _float(array.cast(pa.float64())),
    pa.lib.Type_FLOAT: lambda array: _float(array.cast(pa.float64())),
    pa.lib.Type_DOUBLE: _float,
    pa.lib.Type_DECIMAL128: _decimal,
    pa.lib.Type_DATE32: _plain(np.int32),
    pa.lib.Type_DATE64: _plain(np.int64),
    pa.lib.Type_TIME32: _plain(np.int32),
    pa.lib.Type_TIME64: _plain(np.int64),
    pa.lib.Type_TIMESTAMP: _plain(np.int64),
    pa.lib.Type_DURATION: _plain(np.int64),
}
_TEXT = frozenset(
    {
        pa.lib.Type_STRING,
        pa.lib.Type_BINARY,
        pa.lib.Type_LARGE_STRING,
        pa.lib.Type_LARGE_BINARY,
        pa.lib.Type_FIXED_SIZE_BINARY,
    }
)


def is_text(kind: pa.DataType) -> bool:
    return kind.id in _TEXT


def has_levels(kind: pa.DataType) -> bool:
    return kind.id in _LEVELS


def levels(array: pa.Array) -> list[Int64s]:
    """Integers, the most significant first, that sort like the values. NULL slots hold undefined values."""
    reader = _LEVELS.get(array.type.id)
    if reader is None:
        raise InvalidSchema(path=str(array.type), problem="values of this type cannot be compared in a trace")
    return reader(array)


def _raw(array: pa.Array, kind: type[np.generic], width: int = 1) -> np.ndarray:
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros((len(array), width), dtype=kind)
    values = np.frombuffer(data, dtype=kind, count=(array.offset + len(array)) * width)
    return values.reshape(-1, width)[array.offset :]
