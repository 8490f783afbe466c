"""Laws of state: rows come back from their bytes, and migrating equals writing the same values under the new schema."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from laminae.state.codec import Migration, row_decoder, row_encoder
from laminae.state.compatibility import resolve
from laminae.state.mapping import StructMapping
from laminae.state.serializer import RowSerializerSnapshot
from laminae.state.types import Array, Field, Leaf, Map, Struct, Type

VALUES: dict[str, st.SearchStrategy[object]] = {
    "boolean": st.booleans(),
    "byte": st.integers(-128, 127),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=20),
    "binary": st.binary(max_size=20),
    "decimal(18,2)": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "decimal(38,0)": st.integers(-(2**120), 2**120).map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), 0))),
}
LEAVES = st.sampled_from(sorted(VALUES)).map(Leaf)


def structs(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Struct]:
    return st.lists(inner, min_size=1, max_size=5).map(
        lambda kinds: Struct(tuple(Field(f"f{place}", kind) for place, kind in enumerate(kinds)))
    )


TYPES: st.SearchStrategy[Type] = st.recursive(
    LEAVES,
    lambda inner: structs(inner) | inner.map(Array) | inner.map(lambda kind: Map(Leaf("string"), kind)),
    max_leaves=8,
)


def values(kind: Type) -> st.SearchStrategy[object]:
    match kind:
        case Leaf(name):
            made = VALUES[name]
        case Struct(fields):
            made = st.tuples(*(values(field.type) for field in fields))
        case Array(element, _):
            made = st.lists(values(element), max_size=3)
        case Map(_, value, _):
            made = st.lists(st.tuples(st.text(max_size=3), values(value)), max_size=3)
    return st.none() | made


@st.composite
def rows(draw: st.DrawFn) -> tuple[Struct, list[tuple[object, ...]]]:
    kind = draw(structs(TYPES))
    row = st.tuples(*(values(field.type) for field in kind.fields))
    return kind, draw(st.lists(row, min_size=1, max_size=4))


def changed(kind: Type, draw: st.DrawFn) -> Type:
    match kind:
        case Struct(fields):
            kept = [Field(field.name, changed(field.type, draw)) for field in fields]
            new = [Field(f"n{place}", found) for place, found in enumerate(draw(st.lists(LEAVES, max_size=2)))]
            return Struct(tuple(draw(st.permutations([*kept, *new]))))
        case Array(element, _):
            return Array(changed(element, draw))
        case Map(key, value, _):
            return Map(key, changed(value, draw))
    return kind


def carried(value: object, old: Type, new: Type) -> object:
    """The same value by name under the new type, NULL for what is new: the meaning of a migration."""
    if value is None:
        return None
    match old, new:
        case Struct(before), Struct(after):
            assert isinstance(value, tuple)
            there = {field.name: (part, field.type) for field, part in zip(before, value, strict=True)}
            return tuple(carried(*there[f.name], f.type) if f.name in there else None for f in after)
        case Array(before, _), Array(after, _):
            assert isinstance(value, list)
            return [carried(part, before, after) for part in value]
        case Map(_, before, _), Map(_, after, _):
            assert isinstance(value, list)
            return [(key, carried(part, before, after)) for key, part in value]
    return value


@given(rows())
def test_rows_come_back_from_their_bytes(made: tuple[Struct, list[tuple[object, ...]]]) -> None:
    kind, found = made
    encode, decode = row_encoder(kind), row_decoder(kind)
    assert [decode(encode(row)) for row in found] == found
    assert RowSerializerSnapshot.from_bytes(RowSerializerSnapshot(kind).to_bytes()).struct == kind


@given(rows(), st.data())
def test_migrating_is_writing_the_same_values_under_the_new_schema(
    made: tuple[Struct, list[tuple[object, ...]]], data: st.DataObject
) -> None:
    old, found = made
    new = data.draw(st.composite(lambda draw: changed(old, draw))())
    assert isinstance(new, Struct)
    verdict = resolve(old, new)
    assert verdict.is_compatible
    if verdict.mapping is None:
        assert new == old
        return
    assert isinstance(verdict.mapping, StructMapping)
    before = pa.array([row_encoder(old)(row) for row in found], pa.binary())
    expected = [row_encoder(new)(carried(row, old, new)) for row in found]
    assert Migration.of(old, new, verdict.mapping).batch(before).to_pylist() == expected
