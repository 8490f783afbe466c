"""Deltas as the JVM would hand them to the kernels, built from plain rows, and changelogs put together again."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa

from laminae.views.kernels.aggregates import (
    DecimalTotal,
    FloatTotal,
    IntegerTotal,
    Tally,
    ValueSet,
)
from laminae.zset.exact_float import float_parts
from laminae.zset.wide_values import to_ints

LOW = (1 << 32) - 1


def spread_hash(key) -> int:
    """A 64-bit number that follows from the key as SQL sees it."""
    text = repr(tuple(canonical(part) for part in key)).encode()
    return ((zlib.crc32(text) << 32) | zlib.crc32(text[::-1] + b"x")) - (1 << 63)


def few_hashes(key) -> int:
    """Three hashes for all keys: nearly everything collides."""
    return spread_hash(key) % 3


def canonical(value):
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


def aggregate_delta(aggregate, rows, hashed=spread_hash) -> pa.Table:
    """`rows` are (key tuple, {accumulator id: value or None}, weight). Linear rows, then valued ones."""
    names = [field.name for field in aggregate.keys]
    linear = defaultdict(lambda: defaultdict(int))
    valued = defaultdict(int)
    keys = {}
    for key, values, weight in rows:
        group = tuple(canonical(part) for part in key)
        keys.setdefault(group, key)
        sums = linear[group]
        sums["_weight"] += weight
        for slot, found in enumerate(aggregate.accumulators, 1):
            value = values.get(found.id)
            if value is not None:
                _add(sums, valued, group, slot, found, value, weight)
    columns = [field.name for field in delta_fields(aggregate)]
    made = []
    for group, sums in linear.items():
        made.append({**dict(zip(names, keys[group], strict=True)), "_hash": hashed(group), "_slot": 0, **sums})
    for (group, slot, value), sums in valued.items():
        found = aggregate.accumulators[slot - 1]
        row = {**dict(zip(names, keys[group], strict=True)), "_hash": hashed(group), "_slot": slot}
        if isinstance(found, ValueSet):
            made.append({**row, f"{found.id}_value": _unpacked(value), "_weight": sums})
        else:
            parts = {f"{found.id}_p{i}": part for i, part in enumerate(sums["parts"])}
            made.append({**row, f"{found.id}_bin": value, **parts, "_weight": sums["weight"]})
    schema = pa.schema(delta_fields(aggregate))
    return pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in made], schema=schema)


def _add(sums, valued, group, slot, found, value, weight) -> None:
    name = found.id
    match found:
        case Tally():
            sums[f"{name}_n"] += weight
        case IntegerTotal():
            sums[f"{name}_n"] += weight
            sums[f"{name}_hi"] += (value >> 32) * weight
            sums[f"{name}_lo"] += (value & LOW) * weight
        case DecimalTotal():
            sums[f"{name}_n"] += weight
            sums[f"{name}_sum"] += value * weight
        case FloatTotal():
            sums[f"{name}_n"] += weight
            bins, integers = float_parts(np.array([value]))
            place = (group, slot, int(bins[0]))
            if place not in valued:
                valued[place] = {"parts": [0, 0, 0], "weight": 0}
            whole = to_ints(integers)[0]
            for i, part in enumerate((whole & LOW, (whole >> 32) & LOW, whole >> 64)):
                valued[place]["parts"][i] += part * weight
            valued[place]["weight"] += weight
        case ValueSet():
            valued[group, slot, canonical(value)] += weight


def _unpacked(value):
    return float("nan") if value == "nan" else value


def delta_fields(aggregate) -> list[pa.Field]:
    fields = [*aggregate.keys, *(pa.field(name, pa.int64()) for name in ("_hash", "_slot", "_weight"))]
    for found in aggregate.accumulators:
        name = found.id
        match found:
            case Tally():
                more = {"n": pa.int64()}
            case IntegerTotal():
                more = {"n": pa.int64(), "hi": pa.int64(), "lo": pa.int64()}
            case DecimalTotal():
                more = {"n": pa.int64(), "sum": pa.decimal128(38, found.scale)}
            case FloatTotal():
                more = {"n": pa.int64(), "bin": pa.int64(), **{f"p{i}": pa.int64() for i in range(3)}}
            case ValueSet():
                more = {"value": found.type}
        fields += [pa.field(f"{name}_{part}", kind) for part, kind in more.items()]
    return fields


def integrate(table: Counter, changes: pa.RecordBatch) -> None:
    """Add a changelog to a multiset of rows; no prefix may take away what is not there."""
    for row in changes.to_pylist():
        op, weight = row.pop("_op"), row.pop("_weight")
        assert weight == (1 if op[0] == "+" else -1)
        values = frozen(row)
        table[values] += weight
        assert table[values] >= 0, f"{op} {row} was not there"
        if not table[values]:
            del table[values]


def check_pairs(changes: pa.RecordBatch, keys) -> None:
    """At most one of +I, -D and -U/+U for each key, and -U directly before its +U."""
    rows = changes.to_pylist()
    seen = Counter()
    for place, row in enumerate(rows):
        key = frozen({name: row[name] for name in keys})
        if row["_op"] == "-U":
            after = rows[place + 1]
            assert after["_op"] == "+U"
            assert frozen({name: after[name] for name in keys}) == key
        if row["_op"] == "+U":
            assert rows[place - 1]["_op"] == "-U"
        else:
            seen[key] += 1
    assert set(seen.values()) <= {1}


def frozen(row) -> tuple:
    return tuple((name, _hashable(value)) for name, value in sorted(row.items()))


def _hashable(value):
    if isinstance(value, dict):
        return frozen(value)
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    return canonical(value)


def rows_of(batches) -> Counter:
    return Counter(frozen(row) for batch in batches for row in batch.to_pylist())


def upsert_delta(table, events, hashed=spread_hash) -> pa.Table:
    """`events` are (row, is it a delete, order[, sequence]), in any order."""
    own = {"_hash": pa.int64(), "_order": pa.int64(), "_deleted": pa.bool_()}
    if table.sequence is not None:
        own["_sequence"] = table.sequence
    made = []
    for row, deleted, order, *sequence in events:
        key = tuple(row[name] for name in table.keys)
        found = {**row, "_hash": hashed(key), "_order": order, "_deleted": deleted}
        made.append({**found, "_sequence": sequence[0]} if sequence else found)
    fields = [field.with_nullable(True) for field in table.columns]
    return pa.Table.from_pylist(made, schema=pa.schema([*fields, *(pa.field(*item) for item in own.items())]))
