"""Equality and order of values as in Spark SQL.

NaN equals itself and is larger than any number; -0.0 equals 0.0. Nested values compare by their parts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from laminae.zset.exact_float import Floats

_NAN = ("NaN",)


def canonical(value: object) -> Hashable:
    """A hashable key that is equal exactly when the values are equal, including rows as dictionaries."""
    match value:
        case float() | np.floating():
            return _NAN if value != value else float(value) + 0.0
        case str() | bytes():
            return value
        case bytearray() | memoryview():
            return bytes(value)
        case Mapping():
            return ("row", frozenset((name, canonical(inner)) for name, inner in value.items()))
        case Sequence():
            return ("list", *map(canonical, value))
    return value


def order_key(value: object) -> SupportsRichComparison:
    """A sort key: numbers first, NaN last."""
    if isinstance(value, (float, np.floating)):
        return (1, 0.0) if value != value else (0, float(value) + 0.0)
    return cast("SupportsRichComparison", value)


def canonical_floats(values: Floats) -> Floats:
    """Normalise all NaNs to one NaN, and -0.0 to 0.0."""
    floats = values + 0.0
    floats[np.isnan(floats)] = np.nan
    return floats
