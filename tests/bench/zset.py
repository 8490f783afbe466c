"""Figures of the vectorised Z-set kernels: nanoseconds a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.zset import (
    CdcEnvelope,
    CdcSource,
    ChangelogBuffer,
    EmittedRows,
    GroupedCount,
    GroupedSum,
    encode_changelog,
    encode_many,
)
from tests.bench.measure import Figure, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RECORDS = 1_000_000
GROUPS, MANY_GROUPS = 1_000, 100_000
KEYS = 100_000


def figures() -> Iterator[Figure]:
    dice = np.random.default_rng(5)
    yield _push_many(dice)
    yield from _aggregates(dice)
    yield _retraction_check(dice)
    yield _debezium(dice)


def _nanoseconds(call: Callable[[], object], records: int) -> float:
    return seconds(call) / records * 1e9


def _push_many(dice: np.random.Generator) -> Figure:
    rows = np.arange(RECORDS, dtype=np.uint32)
    weights = dice.choice([-1, 1], RECORDS)
    codes = (2 * weights).astype(np.int8)
    buffer = ChangelogBuffer.with_capacity(RECORDS)

    def epoch() -> None:
        assert buffer.push_many(0, rows, weights, codes) == RECORDS
        buffer._length = 0

    told = "1M references, -U and +U, each sign checked against its weight"
    return Figure("ChangelogBuffer.push_many", _nanoseconds(epoch, RECORDS), 5, "ns/record", told)


def _aggregates(dice: np.random.Generator) -> Iterator[Figure]:
    weights = dice.choice([-1, 1, 1], RECORDS)
    values = dice.integers(-(10**6), 10**6, RECORDS)
    few, many = (dice.integers(0, groups, RECORDS) for groups in (GROUPS, MANY_GROUPS))
    count, total = GroupedCount(), GroupedSum(pa.int64())
    doubles, decimals = GroupedSum(pa.float64()), GroupedSum(pa.decimal128(18, 2))
    counted = _nanoseconds(lambda: count.update_many(many, weights=weights), RECORDS)
    told = f"a third retracted, {GROUPS:,} groups ({MANY_GROUPS:,} groups: {counted:.1f})"
    spent = _nanoseconds(lambda: count.update_many(few, weights=weights), RECORDS)
    yield Figure("retractable count", spent, 5, "ns/record", told)
    summed = _nanoseconds(lambda: total.update_many(many, values, weights), RECORDS)
    floats = values / 7
    exact = _nanoseconds(lambda: doubles.update_many(few, floats, weights), RECORDS)
    money = pa.array(values).cast(pa.decimal128(21, 2)).cast(pa.decimal128(18, 2))
    in_cents = _nanoseconds(lambda: decimals.update_many(few, money, weights), RECORDS)
    told = (
        f"the same, with the count behind NULL ({MANY_GROUPS:,} groups: {summed:.1f}; exact sums of doubles: "
        f"{exact:.0f}, of decimals: {in_cents:.0f})"
    )
    spent = _nanoseconds(lambda: total.update_many(few, values, weights), RECORDS)
    yield Figure("retractable sum of BIGINT", spent, 5, "ns/record", told)


def _retraction_check(dice: np.random.Generator) -> Figure:
    emitted = EmittedRows(pa.schema([("n", pa.int64()), ("total", pa.int64())]))
    everything = np.arange(10 * KEYS)
    emitted.check_many(everything, pa.table({"n": everything, "total": everything}))
    epochs = [
        (np.sort(dice.choice(len(everything), KEYS, replace=False)), dice.integers(0, 10, (2, KEYS))) for _ in range(8)
    ]
    turn = iter(range(10**9))

    def epoch() -> None:
        keys, (counts, totals) = epochs[next(turn) % len(epochs)]
        emitted.check_many(keys, pa.table({"n": counts, "total": totals}))

    told = "100,000 keys of 1M in order, two columns; old rows looked up, compared, replaced"
    return Figure("retraction check", _nanoseconds(epoch, KEYS), 100, "ns/key", told)


def _debezium(dice: np.random.Generator) -> Figure:
    pairs = KEYS // 2
    ids = np.repeat(np.arange(pairs), 2)
    table = pa.table(
        {
            "_op": pa.array(["-U", "+U"] * pairs),
            "_timestamp": np.full(2 * pairs, 1706140800000),
            "id": ids,
            "name": pa.array([f"customer {i % 977}" for i in ids]),
            "amount": dice.integers(0, 10**6, 2 * pairs),
        }
    )
    source = CdcSource("laminae", "default", "orders", 42)
    rows = table.select(["id", "name", "amount"]).to_pylist()[:2000]
    events = [CdcEnvelope.update(rows[i], rows[i + 1], source, 1706140800000) for i in range(0, len(rows), 2)]
    one_by_one = _nanoseconds(lambda: encode_many(events), len(events)) / 1000
    spent = _nanoseconds(lambda: encode_changelog(table, source, key=["id"]), pairs) / 1000
    told = f"50,000 updates of three columns with both images and keys, from Arrow (from objects: {one_by_one:.2f} us)"
    return Figure("Debezium encode", spent, 1, "us/event", told)
