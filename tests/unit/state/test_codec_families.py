"""Batches of a store as Spark's workers see them: families that come mixed, rows that change and rows that stay."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from laminae.state.checkpoint.report import FamilyPlan, Side
from laminae.state.codec import row_decoder, row_encoder
from laminae.state.codec.families import BYTES, FamiliesMigration, FamilyEncoding
from laminae.state.compatibility import resolve
from laminae.state.types import Leaf, Struct, struct

KEY = struct(("id", Leaf("long")))
OLD = struct(("n", Leaf("integer")), ("s", Leaf("string")))
NEW = struct(("s", Leaf("string")), ("added", Leaf("string")), ("n", Leaf("integer")))


def plan(family: str, old: Struct, new: Struct) -> FamilyPlan:
    value = Side(old, new, resolve(old, new).mapping)
    return FamilyPlan(0, "transformWithStateInPySparkExec", "default", family, Side(KEY, KEY), value)


def batch(*families: str) -> pa.RecordBatch:
    keys = [row_encoder(KEY)((number,)) for number in range(len(families))]
    values = [row_encoder(OLD)((number, f"s{number}")) for number in range(len(families))]
    columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(families, pa.string())]
    return pa.RecordBatch.from_arrays(columns, names=list(BYTES))


@pytest.mark.parametrize("families", [("a", "b", "a", "c", "b"), ("a", "a"), ("b",), ()])
def test_rows_of_mixed_families_go_back_in_the_order_they_came(families: tuple[str, ...]) -> None:
    migration = pickle.loads(pickle.dumps(FamiliesMigration((plan("a", OLD, NEW), plan("b", OLD, OLD)))))
    (found,) = migration(iter([batch(*families)]))
    assert found.column(2).to_pylist() == list(families)
    assert found.column(0).to_pylist() == batch(*families).column(0).to_pylist()
    for number, (family, row) in enumerate(zip(families, found.column(1).to_pylist(), strict=True)):
        expected = (
            {"s": f"s{number}", "added": None, "n": number} if family == "a" else {"n": number, "s": f"s{number}"}
        )
        assert row_decoder(NEW if family == "a" else OLD, named=True)(row) == expected


def test_columns_are_encoded_as_rows_of_the_new_schema() -> None:
    key = pa.array([{"id": 1}, {"id": 2}], pa.struct([("id", pa.int64())]))
    value = pa.StructArray.from_arrays(
        [pa.array(["x", None]), pa.array([None, "y"]), pa.array([1, 2])], ["s", "a", "n"]
    )
    given = pa.RecordBatch.from_arrays([key, value], names=["key", "value"])
    (found,) = FamilyEncoding(plan("default", OLD, NEW))(iter([given]))
    decoded = [row_decoder(NEW)(row) for row in found.column(1).to_pylist()]
    assert decoded == [("x", None, 1), (None, "y", 2)]
    assert found.column(2).to_pylist() == ["default", "default"]


def test_a_worker_loads_no_more_than_it_needs() -> None:
    """It is paid for in every worker of a migration: the parser of SQL alone takes half a second."""
    loaded = "import sys, laminae.state.codec.families; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pyspark", "sqlglot", "lark", "sqlite3", "rich", "pandas"} & set(told)
