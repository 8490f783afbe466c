"""Deltas as the JVM would hand them to the kernels, built from plain rows, and changelogs put together again."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from laminae.views.kernels.group_by.aggregates import (
    SLOT,
    Accumulator,
    Aggregate,
    DecimalTotal,
    FloatTotal,
    IntegerTotal,
    Tally,
    ValueSet,
)
from laminae.zset.exact_float import float_parts
from laminae.zset.wide_conversion import to_ints

if TYPE_CHECKING:
    from laminae.views.kernels.upsert.keyed_table import KeyedTable

LOW = (1 << 32) - 1

Key = Sequence[object]
HashFunction = Callable[[Key], int]
FrozenRow = tuple[tuple[str, Hashable], ...]
"""Name and value of each column, by name."""
UpsertEvent = tuple[Mapping[str, object], bool, int] | tuple[Mapping[str, object], bool, int, object]
"""A row, whether it is a delete, its order and, if the table has one, its sequence."""


def spread_hash(key: Key) -> int:
    """A 64-bit number that follows from the key as SQL sees it."""
    text = repr(tuple(canonical(part) for part in key)).encode()
    return ((zlib.crc32(text) << 32) | zlib.crc32(text[::-1] + b"x")) - (1 << 63)


def few_hashes(key: Key) -> int:
    """Three hashes for all keys: nearly everything collides."""
    return spread_hash(key) % 3


def canonical(value: object) -> Hashable:
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return _Nested(value) if isinstance(value, dict | list) else value


class _Nested:
    """A nested value as a key of a dictionary."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nested) and self.value == other.value

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(slots=True)
class _ValuedRow:
    """What an accumulator of a group has of one value; `parts` are those of a float's bin."""

    weight: int = 0
    parts: list[int] = field(default_factory=lambda: [0, 0, 0])


_Group = tuple[Hashable, ...]
_Valued = defaultdict[tuple[_Group, int, Hashable], _ValuedRow]
"""By group, slot of the accumulator, and value or bin."""


def aggregate_delta(
    aggregate: Aggregate,
    rows: Iterable[tuple[Key, Mapping[str, Any], int]],
    hashed: HashFunction = spread_hash,
) -> pa.Table:
    """`rows` are (key tuple, {accumulator id: value or None}, weight). Linear rows, then valued ones."""
    names = [field.name for field in aggregate.keys]
    linear: dict[_Group, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
    valued: _Valued = defaultdict(_ValuedRow)
    keys: dict[_Group, Key] = {}
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
        made.append({**dict(zip(names, keys[group], strict=True)), "_hash": hashed(group), SLOT: 0, **sums})
    for (group, slot, value), valued_row in valued.items():
        found = aggregate.accumulators[slot - 1]
        row = {**dict(zip(names, keys[group], strict=True)), "_hash": hashed(group), SLOT: slot}
        if isinstance(found, ValueSet):
            made.append({**row, f"{found.id}_value": _unpacked(value), "_weight": valued_row.weight})
        else:
            parts = {f"{found.id}_p{i}": part for i, part in enumerate(valued_row.parts)}
            made.append({**row, f"{found.id}_bin": value, **parts, "_weight": valued_row.weight})
    schema = pa.schema(delta_fields(aggregate))
    return pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in made], schema=schema)


def _add(
    sums: dict[str, Any], valued: _Valued, group: _Group, slot: int, found: Accumulator, value: Any, weight: int
) -> None:
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
            row = valued[group, slot, int(bins[0])]
            whole = to_ints(integers)[0]
            for i, part in enumerate((whole & LOW, (whole >> 32) & LOW, whole >> 64)):
                row.parts[i] += part * weight
            row.weight += weight
        case ValueSet():
            valued[group, slot, canonical(value)].weight += weight


def _unpacked(value: Hashable) -> object:
    if isinstance(value, _Nested):
        return value.value
    return float("nan") if value == "nan" else value


def delta_fields(aggregate: Aggregate) -> list[pa.Field]:
    fields = [*aggregate.keys, *(pa.field(name, pa.int64()) for name in ("_hash", SLOT, "_weight"))]
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


def integrate(table: Counter[FrozenRow], changes: pa.RecordBatch) -> None:
    """Add a changelog to a multiset of rows; no prefix may take away what is not there."""
    for row in changes.to_pylist():
        op, weight = row.pop("_op"), row.pop("_weight")
        assert weight == (1 if op[0] == "+" else -1)
        values = frozen(row)
        table[values] += weight
        assert table[values] >= 0, f"{op} {row} was not there"
        if not table[values]:
            del table[values]


def check_pairs(changes: pa.RecordBatch, keys: Sequence[str]) -> None:
    """At most one of +I, -D and -U/+U for each key, and -U directly before its +U."""
    rows = changes.to_pylist()
    seen: Counter[FrozenRow] = Counter()
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


def frozen(row: Mapping[str, object]) -> FrozenRow:
    return tuple((name, _hashable(value)) for name, value in sorted(row.items()))


def _hashable(value: object) -> Hashable:
    if isinstance(value, dict):
        return frozen(value)
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    return canonical(value)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Counter[FrozenRow]:
    return Counter(frozen(row) for batch in batches for row in batch.to_pylist())


def upsert_delta(table: KeyedTable, events: Iterable[UpsertEvent], hashed: HashFunction = spread_hash) -> pa.Table:
    """`events` may be in any order."""
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
