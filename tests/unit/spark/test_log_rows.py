"""Rows as people have them become JSON documents, or an error that says which row and where in it."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from laminae.errors import InvalidRow
from laminae.spark.sources.push_rows import documents


def document(value: object) -> str:
    return documents([{"v": value}], "orders")[0].decode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ('é"\n', '"é\\"\\n"'),
        (datetime(2026, 3, 1, 12, tzinfo=UTC), '"2026-03-01T12:00:00+00:00"'),
        (datetime(2026, 3, 1, 12, 0, 0, 5), '"2026-03-01T12:00:00.000005"'),
        (date(2026, 3, 1), '"2026-03-01"'),
        (time(1, 2, 3), '"01:02:03"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), "1.10"),
        (Decimal("12345678901234567890123456789.012345678"), "12345678901234567890123456789.012345678"),
        (Decimal("1E+3"), "1E+3"),
        (b"\x00\xff", '"AP8="'),
        ((1, (2, b"x")), '[1,[2,"eA=="]]'),
        ({"a": [Decimal("0.10")]}, '{"a":[0.10]}'),
        (2**100, str(2**100)),
        (OrderedDict(a=1), '{"a":1}'),
        (np.int64(7), "7"),
        (np.float64(0.5), "0.5"),
        (np.array([1, 2]), "[1,2]"),
    ],
)
def test_value_has_one_rendering(value: object, text: str) -> None:
    assert document(value) == f'{{"v":{text}}}'


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "v"),
        (float("-inf"), "v"),
        (np.float64("nan"), "v"),
        (np.array([1.0, np.inf]), "v[1]"),
        (Decimal("NaN"), "v"),
        ({"a": [0.0, float("inf")]}, "v.a[1]"),
        ({1, 2}, "v"),
        (pd.NaT, "v"),
        ("\ud800", "v"),
        ({1: "x"}, "v"),
    ],
)
def test_value_without_json_is_refused_with_its_row_and_path(value: object, path: str) -> None:
    with pytest.raises(InvalidRow) as refused:
        documents([{"v": 1}, {"v": value}], "orders")
    assert (refused.value.params["row"], refused.value.params["path"]) == (1, path)


def test_row_without_names_is_refused() -> None:
    with pytest.raises(InvalidRow, match=r"Row 0 .* it is a tuple"):
        documents([(1, 2)], "orders")  # type: ignore[list-item]  # what is refused


def test_arrow_table_and_batch_give_the_documents_of_their_rows() -> None:
    table = pa.table({"id": [1, 2], "price": pa.array([Decimal("1.10"), None], pa.decimal128(10, 2))})
    expected = [b'{"id":1,"price":1.10}', b'{"id":2,"price":null}']
    assert documents(table, "orders") == documents(table.to_batches()[0], "orders") == expected


def test_arrow_map_becomes_an_object() -> None:
    table = pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    assert documents(table, "orders") == [b'{"m":{"a":1}}']


def test_arrow_nan_is_refused() -> None:
    with pytest.raises(InvalidRow, match="nan"):
        documents(pa.table({"x": [float("nan")]}), "orders")


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidRow, match="two columns"):
        documents(pa.table([[1], [2]], names=["a", "a"]), "orders")


def test_pandas_frame_has_null_where_a_value_is_missing() -> None:
    frame = pd.DataFrame({"x": [1.5, None], "at": pd.to_datetime(["2026-03-01", None])}, index=[7, 9])
    assert documents(frame, "orders") == [b'{"x":1.5,"at":"2026-03-01T00:00:00"}', b'{"x":null,"at":null}']


def test_one_dict_is_one_row() -> None:
    assert documents({"id": 1}, "orders") == [b'{"id":1}']


def test_no_rows_are_no_documents() -> None:
    assert documents([], "orders") == []
