"""SELECT DISTINCT and UNION as a kernel: a row is shown once while its weight is positive.

It is a GROUP BY of all columns that shows no aggregate, so -U and +U cannot occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.views.kernels.aggregates import Aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


def distinct(view: str, columns: Iterable[pa.Field]) -> Aggregate:
    """For `aggregate.step`. Delta: `_hash` of the whole row, the columns, and `_weight` summed over every input."""
    return Aggregate(view, tuple(columns), (), ())
