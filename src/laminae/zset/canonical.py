"""When two values are the same value, and which is smaller, as SQL on Spark has it.

NaN equals itself and is above every number; -0.0 is 0.0. Nested values compare by their parts.
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
    """A key that is equal exactly when the values are the same value, rows of dictionaries included."""
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
    """A key to sort by: numbers first, NaN last."""
    if isinstance(value, (float, np.floating)):
        return (1, 0.0) if value != value else (0, float(value) + 0.0)
    return cast("SupportsRichComparison", value)


def canonical_floats(values: Floats) -> Floats:
    """One NaN, one zero."""
    found = values + 0.0
    found[np.isnan(found)] = np.nan
    return found
