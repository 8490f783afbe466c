"""Bytes of an UnsafeRow to Python values: one closure for each type, made once and used for every row.

Structs become tuples, or dicts by name where `named` asks for it; NULL becomes None.
"""

from __future__ import annotations

import struct as packing
from typing import TYPE_CHECKING, TypeAlias

from laminae.errors import InvalidRowBytes
from laminae.state.codec.layout import WORD, bitmap_words, leaf_layout
from laminae.state.codec.values import CalendarInterval, VariantValue, logical, scaled
from laminae.state.leaves import Form, Layout
from laminae.state.types import Array, Leaf, Map, Struct, Type, duplicates, physical

if TYPE_CHECKING:
    from collections.abc import Callable

Read: TypeAlias = "Callable[[bytes], object]"

INTEGERS = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}
FLOATS = {4: "<f", 8: "<d"}


def row_decoder(struct: Struct, *, named: bool = False) -> Read:
    """A function from the bytes of a row to its values."""
    read = _reader(struct, named)

    def decode(row: bytes) -> object:
        try:
            return read(row)
        except (packing.error, ValueError, IndexError, OverflowError) as problem:
            raise InvalidRowBytes(problem=f"its {len(row)} bytes are no row of {struct}: {problem}") from None

    return decode


def _reader(kind: Type, named: bool) -> Read:
    kind = physical(kind)
    match kind:
        case Struct():
            return _struct_reader(kind, named)
        case Array(element, _):
            return _array_reader(element, named)
        case Map(key, value, _):
            return _map_reader(_array_reader(key, named), _array_reader(value, named))
        case Leaf(name):
            layout = leaf_layout(kind)
            assert layout is not None
            return _leaf_reader(name, layout)
    raise TypeError(f"{kind} has no bytes")


def _leaf_reader(name: str, layout: Layout) -> Read:
    """Reads the low bytes of a word, or the bytes behind the row."""
    if layout.form in (Form.INTEGER, Form.SMALL_DECIMAL, Form.FLOAT):
        return _number_reader(name, layout)
    match layout.form:
        case Form.NOTHING:
            return lambda part: None
        case Form.BOOLEAN:
            return lambda part: part[0] != 0
        case Form.LARGE_DECIMAL:
            return lambda part: scaled(int.from_bytes(part, "big", signed=True), layout.scale)
        case Form.CALENDAR_INTERVAL:
            return lambda part: CalendarInterval(*packing.unpack("<iiq", part[:16]))
        case Form.TEXT:
            return lambda part: part.decode("utf-8", "surrogateescape")
        case Form.VARIANT:
            return _variant
    return bytes


def _number_reader(name: str, layout: Layout) -> Read:
    assert layout.width is not None
    table = FLOATS if layout.form is Form.FLOAT else INTEGERS
    unpack, width = packing.Struct(table[layout.width]).unpack_from, layout.width
    if layout.form is Form.SMALL_DECIMAL:
        return lambda part: scaled(unpack(part)[0], layout.scale)
    from_physical = logical(name)[1]
    return lambda part: from_physical(unpack(part[:width])[0])


def _variant(part: bytes) -> VariantValue:
    size = int.from_bytes(part[:4], "little")
    return VariantValue(part[4 : 4 + size], part[4 + size :])


def _struct_reader(struct: Struct, named: bool) -> Read:
    head = bitmap_words(len(struct.fields)) * WORD
    steps = [
        (1 << place, head + place * WORD, layout is not None and layout.is_word, _reader(field.type, named))
        for place, field in enumerate(struct.fields)
        for layout in (leaf_layout(field.type),)
    ]
    names = struct.names if named and not duplicates(struct.names) else None
    least = head + len(steps) * WORD

    def read(row: bytes) -> object:
        if len(row) < least:
            raise ValueError(f"{least} bytes are the least")
        nulls = int.from_bytes(row[:head], "little")
        values = tuple(
            None if nulls & bit else inner(row[place : place + WORD] if word else _part(row, place))
            for bit, place, word, inner in steps
        )
        return values if names is None else dict(zip(names, values, strict=True))

    return read


def _part(row: bytes, place: int) -> bytes:
    size = int.from_bytes(row[place : place + 4], "little")
    offset = int.from_bytes(row[place + 4 : place + WORD], "little")
    if offset + size > len(row):
        raise ValueError(f"a field points to byte {offset + size}")
    return row[offset : offset + size]


def _array_reader(element: Type, named: bool) -> Read:
    layout, inner = leaf_layout(element), _reader(element, named)
    width = WORD if layout is None or layout.width is None else layout.width
    is_part = layout is None or layout.width is None

    def read(array: bytes) -> object:
        (count,) = packing.unpack_from("<q", array)
        head = WORD + bitmap_words(count) * WORD
        if count < 0 or head + count * width > len(array):
            raise ValueError(f"an array of {count} elements has {len(array)} bytes")
        nulls = int.from_bytes(array[WORD:head], "little")
        return [
            None if nulls >> index & 1 else inner(_part(array, place) if is_part else array[place : place + width])
            for index, place in enumerate(range(head, head + count * width, width))
        ]

    return read


def _map_reader(keys: Read, values: Read) -> Read:
    def read(entries: bytes) -> object:
        size = int.from_bytes(entries[:WORD], "little")
        found_keys, found_values = keys(entries[WORD : WORD + size]), values(entries[WORD + size :])
        assert isinstance(found_keys, list)
        assert isinstance(found_values, list)
        # Pairs, not a dict: a key may be a struct with parts that do not hash.
        return list(zip(found_keys, found_values, strict=True))

    return read
