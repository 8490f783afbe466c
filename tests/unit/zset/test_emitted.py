"""The retraction check for many keys at once."""

import math
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from laminae.zset.library.emitted import EmittedRows
from laminae.zset.outcome import DELETE, INSERT, NO_CHANGE, UPDATE

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])


def keys(*numbers):
    return np.array(numbers, dtype=np.int64)


def rows(*values, schema=SCHEMA):
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema)


def test_new_changed_equal_and_gone_rows_are_told_apart():
    emitted = EmittedRows(SCHEMA)
    assert emitted.check_many(keys(0, 1, 2), rows((1, "a"), (2, "b"), (3, "c"))).outcomes.tolist() == [INSERT] * 3
    found = emitted.check_many(
        keys(2, 0, 1, 7), rows((3, "c"), (1, "z"), (None, None), (None, None)), np.array([True, True, False, False])
    )
    assert found.outcomes.tolist() == [NO_CHANGE, UPDATE, DELETE, NO_CHANGE]
    assert found.old.to_pylist() == [
        {"n": 3, "s": "c"},
        {"n": 1, "s": "a"},
        {"n": 2, "s": "b"},
        {"n": None, "s": None},
    ]
    assert len(emitted) == 2
    assert emitted.check_many(keys(1), rows((2, "b"))).outcomes.tolist() == [INSERT]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.float64(), math.nan, None),
        (pa.float64(), 0.0, 1.0),
        (pa.float32(), 0.5, math.nan),
        (pa.bool_(), False, None),
        (pa.date32(), date(1970, 1, 1), None),
        (pa.timestamp("us", "UTC"), 0, 1),
        (pa.decimal128(38, 2), Decimal("1.00"), Decimal("1.01")),
        (pa.list_(pa.int64()), [1, None], [1]),
        (pa.struct([("x", pa.float64())]), {"x": math.nan}, {"x": None}),
        (pa.int32(), 0, None),
    ],
)
def test_values_of_every_type_are_compared_and_given_back(kind, one, other):
    schema = pa.schema([("v", kind)])
    emitted = EmittedRows(schema)
    first, second = rows((one,), (other,), schema=schema), rows((other,), (one,), schema=schema)
    emitted.check_many(keys(0, 1), first)
    same = emitted.check_many(keys(0, 1), first)
    assert same.outcomes.tolist() == [NO_CHANGE, NO_CHANGE]
    changed = emitted.check_many(keys(0, 1), second)
    assert changed.outcomes.tolist() == [UPDATE, UPDATE]
    assert str(changed.old.to_pylist()) == str(first.to_pylist())
    assert changed.old.schema == schema


def test_both_zeros_are_one_value():
    schema = pa.schema([("v", pa.float64())])
    emitted = EmittedRows(schema)
    emitted.check_many(keys(0), rows((0.0,), schema=schema))
    assert emitted.check_many(keys(0), rows((-0.0,), schema=schema)).outcomes.tolist() == [NO_CHANGE]


def test_forgotten_keys_start_anew():
    emitted = EmittedRows(SCHEMA)
    emitted.check_many(keys(0, 1), rows((1, "a"), (2, "b")))
    emitted.forget(keys(0, 99))
    assert emitted.check_many(keys(0, 1), rows((1, "a"), (2, "b"))).outcomes.tolist() == [INSERT, NO_CHANGE]


def test_no_keys_no_outcomes():
    assert EmittedRows(SCHEMA).check_many(keys(), rows()).outcomes.tolist() == []
