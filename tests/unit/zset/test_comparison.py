"""Equality of rows, for every type that Arrow can compare: also those that no trace can hold."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from laminae.zset.comparison import same_rows


@pytest.mark.parametrize("kind", [pa.decimal256(40, 2), pa.decimal128(10, 2)], ids=str)
def test_decimals_of_any_width_are_compared(kind: pa.DataType) -> None:
    left = pa.table({"a": pa.array([Decimal("1.00"), Decimal("2.00"), None, None], kind)})
    right = pa.table({"a": pa.array([Decimal("1.00"), Decimal("2.01"), None, Decimal("0.00")], kind)})
    assert same_rows(left, right).tolist() == [True, False, True, False]
