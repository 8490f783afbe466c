"""Keys of every type are compared as SQL compares them, whatever their hashes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from laminae.errors import InvalidSchema
from laminae.trace.cluster import clusters
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, latest
from laminae.trace.spec import TraceSpec, stored_type
from laminae.trace.store import RunStore
from laminae.zset.comparison import before, rank_of, same
from laminae.zset.ordered_bits import levels

NAN = float("nan")
ODD_NAN = float(np.frombuffer(b"\x01\0\0\0\0\0\xf8\xff", dtype=np.float64)[0])

KEYS = {
    pa.int8(): [-128, 0, 127],
    pa.int32(): [-1, 0, 2**31 - 1],
    pa.int64(): [-(2**63), 0, 2**63 - 1],
    pa.uint64(): [0, 1, 2**64 - 1],
    pa.string(): ["", "a", "a\0", "\u00e9", "\U0001f600"],
    pa.binary(): [b"", b"\0", b"\0\0", b"\xff"],
    pa.bool_(): [False, True],
    pa.date32(): [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    pa.timestamp("us"): [datetime(1, 1, 1), datetime(2026, 1, 1)],
    pa.timestamp("us", "UTC"): [datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)],
    pa.decimal128(38, 2): [Decimal("-9e35"), Decimal("-0.01"), Decimal("0.00"), Decimal("1e20"), Decimal("9e35")],
    pa.float32(): [-np.inf, -1.5, 0.0, 1.5, np.inf, NAN],
    pa.float64(): [-np.inf, -1e300, 0.0, 5e-324, np.inf, NAN],
}


@pytest.mark.parametrize("kind", KEYS, ids=str)
def test_values_are_equal_only_to_themselves_and_null_to_null(kind):
    found = pa.array([*KEYS[kind], None], kind).cast(stored_type(kind))
    count = len(found)
    left, right = (
        found.take(pa.array(places))
        for places in (np.repeat(np.arange(count), count), np.tile(np.arange(count), count))
    )
    assert same(left, right).reshape(count, count).tolist() == np.eye(count, dtype=bool).tolist()


@pytest.mark.parametrize("kind", KEYS, ids=str)
def test_values_are_ordered_as_listed(kind):
    found = pa.array(KEYS[kind], kind).cast(stored_type(kind))
    assert before([found[:-1]], [found[1:]], len(found) - 1).all()
    assert not before([found[1:]], [found[:-1]], len(found) - 1).any()
    ranked = rank_of(found)
    assert (ranked[1:] > ranked[:-1]).all()


@pytest.mark.parametrize("kind", KEYS, ids=str)
def test_every_key_is_found_again_though_all_hashes_collide(kind, tmp_path):
    keys = pa.array([*KEYS[kind], None], kind)
    spec = TraceSpec.replace("t", [pa.field("k", kind)], [pa.field("place", pa.int64())])
    store, runs = RunStore.at(str(tmp_path)), ()
    for places in (range(len(keys)), range(0, len(keys), 2)):
        rows = pa.array(list(places))
        columns = [
            pa.nulls(len(rows)).cast(pa.int64()).fill_null(7),
            keys.take(rows).cast(stored_type(kind)),
            rows,
            pa.repeat(1, len(rows)),
        ]
        runs = append(store, spec, runs, pa.RecordBatch.from_arrays(columns, schema=spec.schema))
    wanted = Wanted(np.full(len(keys), 7), (keys.cast(stored_type(kind)),))
    assert latest(spec, [store.open(run) for run in runs], wanted).payload["place"].to_pylist() == list(
        range(len(keys))
    )


def test_both_zeros_are_one_key_and_every_nan_is_one():
    found = pa.array([0.0, -0.0, NAN, ODD_NAN])
    assert clusters(np.zeros(4, dtype=np.int64), [found]).members().tolist() == [0, 0, 1, 1]
    assert same(found[::2], pa.array([-0.0, ODD_NAN])).tolist() == [True, True]


def test_sliced_arrays_are_read_from_their_own_beginning():
    found = pa.array([1, None, 3, 4]).slice(1)
    assert same(found, pa.array([None, 3, 5])).tolist() == [True, True, False]
    decimals = pa.array([Decimal(1), Decimal(2)], pa.decimal128(5, 0)).slice(1)
    assert same(decimals, pa.array([Decimal(2)], pa.decimal128(5, 0))).tolist() == [True]


def test_nested_rows_are_compared_value_by_value():
    kind = pa.struct([("a", pa.list_(pa.float64())), ("m", pa.map_(pa.string(), pa.int32()))])
    rows = [
        {"a": [1.0, NAN], "m": [("x", 1)]},
        {"a": None, "m": []},
        None,
        {"a": [], "m": None},
        {"a": [None], "m": []},
    ]
    found = pa.array(rows, kind)
    assert same(found, pa.array(rows, kind)).all()
    assert not same(found[:-1], found[1:]).any()
    assert same(found[1:], pa.array(rows[1:], kind)).all()


def test_type_without_an_order_is_refused():
    with pytest.raises(InvalidSchema, match="cannot be compared"):
        levels(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))


def test_rows_of_one_key_keep_the_order_of_their_arrival():
    hashes = np.array([5, 3, 5, 3, 5])
    found = clusters(hashes, [pa.array(["a", "b", "a", "c", "a"])])
    assert found.firsts.tolist() == [1, 3, 0]
    assert found.lasts.tolist() == [1, 3, 4]
    assert found.members().tolist() == [2, 0, 2, 1, 2]
