"""Bytes that an earlier laminae wrote, kept in the repository: every later one must open them."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from laminae.trace.lookup import Wanted, latest
from laminae.trace.manifest import Manifest
from laminae.trace.scan import scan
from laminae.trace.spec import TraceSpec
from laminae.trace.store import RunStore
from tests.support.build import col

OLDEST = Path(__file__).parent / "format_1"
GROUPS = TraceSpec.replace(
    "groups",
    [col("k", "string", id=1), col("d", "date", id=2)],
    [col("n", "bigint"), col("total", pa.decimal128(20, 2), id=3)],
)
VALUES = TraceSpec.sum("m", [col("k", "string", id=1)], [col("m_value", "double")], [col("p", "bigint")])


@pytest.fixture
def store() -> RunStore:
    return RunStore.at(str(OLDEST))


@pytest.fixture
def manifest() -> Manifest:
    return Manifest.from_json((OLDEST / "manifest.json").read_text(encoding="utf-8"))


def test_rows_of_format_1_are_read(store, manifest):
    (batch,) = scan(GROUPS, [store.open(run) for run in manifest.runs("groups")])
    found = {tuple(row.values())[1:] for row in batch.to_pylist()}
    assert found == {
        ("a", date(2026, 1, 1), 1, Decimal("1.50"), 1),
        (None, None, 2, None, 1),
        ("\u00e9", date(1, 1, 1), 3, Decimal("-0.01"), 1),
    }


def test_values_of_format_1_are_read(store, manifest):
    (batch,) = scan(VALUES, [store.open(run) for run in manifest.runs("m")])
    assert batch.column("p").to_pylist() == [3, 4, 5]
    assert [str(value) for value in batch.column("m_value").to_pylist()] == ["0.5", str(math.nan), "-1.0"]


def test_keys_of_format_1_are_found(store, manifest):
    keys = pa.array(["\u00e9", None, "a"], pa.large_string()), pa.array([date(1, 1, 1), None, None])
    found = latest(GROUPS, [store.open(run) for run in manifest.runs("groups")], Wanted(np.array([7, 7, -5]), keys))
    assert found.payload["n"].to_pylist() == [3, 2, None]
