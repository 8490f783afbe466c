"""Python values to the bytes of an UnsafeRow, as Spark's UnsafeRowWriter and UnsafeArrayWriter lay them out.

One closure for each type. A struct takes a tuple or a mapping by name, a map takes pairs or a dict.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from laminae.errors import InvalidRowBytes
from laminae.state.codec.layout import WORD, bitmap_words, leaf_layout
from laminae.state.codec.values import CalendarInterval, VariantValue, logical, unscaled
from laminae.state.leaves import Form, Layout
from laminae.state.types import Array, Leaf, Map, Struct, Type, physical

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

Write: TypeAlias = "Callable[[object], bytes]"

FORMATS = {
    (Form.BOOLEAN, 1): "<?",
    (Form.INTEGER, 1): "<b",
    (Form.INTEGER, 2): "<h",
    (Form.INTEGER, 4): "<i",
    (Form.INTEGER, 8): "<q",
    (Form.SMALL_DECIMAL, 8): "<q",
    (Form.FLOAT, 4): "<f",
    (Form.FLOAT, 8): "<d",
}
EMPTY_WORD = b"\0" * WORD


def row_encoder(struct: Struct) -> Write:
    """A function from the values of a row to its bytes."""
    write = _writer(struct)

    def encode(values: object) -> bytes:
        try:
            return write(values)
        except (packing.error, ValueError, TypeError, AttributeError, KeyError) as problem:
            raise InvalidRowBytes(problem=f"{values!r} is no row of {struct}: {problem}") from None

    return encode


def _writer(kind: Type) -> Write:
    kind = physical(kind)
    match kind:
        case Struct():
            return _struct_writer(kind)
        case Array(element, contains_null):
            return _array_writer(element, contains_null)
        case Map():
            return _map_writer(_array_writer(kind.key, False), _array_writer(kind.value, kind.value_contains_null))
        case Leaf(name):
            layout = leaf_layout(kind)
            assert layout is not None
            return _leaf_writer(name, layout)
    raise TypeError(f"{kind} has no bytes")


def _leaf_writer(name: str, layout: Layout) -> Write:
    match layout.form:
        case Form.NOTHING:
            return lambda value: EMPTY_WORD
        case Form.SMALL_DECIMAL:
            return lambda value: packing.pack("<q", unscaled(cast("Decimal", value), layout.scale))
        case Form.LARGE_DECIMAL:
            return lambda value: _big_endian(unscaled(cast("Decimal", value), layout.scale))
        case Form.CALENDAR_INTERVAL:
            return lambda value: packing.pack("<iiq", *cast("CalendarInterval", value))
        case Form.TEXT:
            return lambda value: cast("str", value).encode("utf-8", "surrogateescape")
        case Form.VARIANT:
            return _variant
        case Form.BINARY:
            return lambda value: bytes(cast("bytes", value))
    assert layout.width is not None
    pack, to_physical = packing.Struct(FORMATS[layout.form, layout.width]).pack, logical(name)[0]
    return lambda value: pack(to_physical(value))


def _big_endian(number: int) -> bytes:
    """As few bytes as hold the number and its sign, as Java's BigInteger gives them."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _variant(value: object) -> bytes:
    variant = cast("VariantValue", value)
    return len(variant.value).to_bytes(4, "little") + variant.value + variant.metadata


def _struct_writer(struct: Struct) -> Write:
    fields = [(field.name, field.nullable, leaf_layout(field.type), _writer(field.type)) for field in struct.fields]
    head = bitmap_words(len(fields)) * WORD

    def write(row: object) -> bytes:
        values = _values(row, struct)
        nulls, slots, parts, end = 0, bytearray(), bytearray(), head + len(fields) * WORD
        for place, (value, (name, nullable, layout, inner)) in enumerate(zip(values, fields, strict=True)):
            null_size = None if layout is None else layout.null_size
            if value is None:
                if not nullable:
                    raise ValueError(f"{name} is NOT NULL and has no value")
                nulls |= 1 << place
                slots += EMPTY_WORD if null_size is None else (end << 32 | null_size).to_bytes(WORD, "little")
                part = b""
            elif layout is not None and layout.is_word:
                slots += inner(value).ljust(WORD, b"\0")
                continue
            else:
                part = inner(value)
                slots += (end << 32 | len(part)).to_bytes(WORD, "little")
            part = _padded(part) if null_size is None else part.ljust(16, b"\0")
            parts += part
            end += len(part)
        return nulls.to_bytes(head, "little") + bytes(slots + parts)

    return write


def _values(row: object, struct: Struct) -> Sequence[object]:
    if isinstance(row, Mapping):
        if unknown := row.keys() - set(struct.names):
            raise ValueError(f"there is no field {sorted(unknown)[0]}")
        return [row.get(name) for name in struct.names]
    if not isinstance(row, Sequence) or isinstance(row, str | bytes):
        raise TypeError(f"{type(row).__name__} is no row")
    return row


def _array_writer(element: Type, contains_null: bool) -> Write:
    layout, inner = leaf_layout(element), _writer(element)
    width = None if layout is None else layout.width

    def write(values: object) -> bytes:
        items = list(cast("Sequence[object]", values))
        head, nulls = WORD + bitmap_words(len(items)) * WORD, 0
        slots, parts, end = bytearray(), bytearray(), head + len(items) * WORD
        for place, value in enumerate(items):
            if value is None:
                if not contains_null:
                    raise ValueError("an element is NULL and may not be")
                nulls |= 1 << place
                slots += b"\0" * (width or WORD)
            elif width is not None:
                slots += inner(value)
            else:
                part = inner(value)
                slots += (end << 32 | len(part)).to_bytes(WORD, "little")
                parts += _padded(part)
                end += len(_padded(part))
        bitmap = nulls.to_bytes(head - WORD, "little")
        return len(items).to_bytes(WORD, "little") + bitmap + _padded(bytes(slots)) + bytes(parts)

    return write


def _map_writer(keys: Write, values: Write) -> Write:
    def write(entries: object) -> bytes:
        pairs = list(entries.items()) if isinstance(entries, Mapping) else list(cast("Sequence[object]", entries))
        key_bytes = keys([key for key, _ in cast("list[tuple[object, object]]", pairs)])
        value_bytes = values([value for _, value in cast("list[tuple[object, object]]", pairs)])
        return len(key_bytes).to_bytes(WORD, "little") + key_bytes + value_bytes

    return write


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % WORD)
