"""Does a JSON default fit an Avro type? The checks Java 1.12 makes, as one table.

As there, a union default may fit any branch (before 1.12: only the first), and the symbol of an enum, the length of
a fixed and the characters of bytes are not looked at: a registry accepts such schemas, so they can be judged here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from laminae.schema.avro.nodes import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroKind,
    AvroMap,
    AvroNamed,
    AvroPrimitive,
    AvroRecord,
    AvroReference,
    AvroType,
    AvroUnion,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_INT_RANGE = range(-(2**31), 2**31)
_LONG_RANGE = range(-(2**63), 2**63)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


PRIMITIVE_DEFAULTS: dict[AvroKind, Callable[[object], bool]] = {
    AvroKind.NULL: lambda value: value is None,
    AvroKind.BOOLEAN: lambda value: isinstance(value, bool),
    AvroKind.INT: lambda value: type(value) is int and value in _INT_RANGE,
    AvroKind.LONG: lambda value: type(value) is int and value in _LONG_RANGE,
    AvroKind.FLOAT: _is_number,
    AvroKind.DOUBLE: _is_number,
    AvroKind.BYTES: _is_text,
    AvroKind.STRING: _is_text,
}

_FLOATING = (AvroKind.FLOAT, AvroKind.DOUBLE)
_number_text = re.compile(r"\s*[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)\s*", re.ASCII).fullmatch


def number_in_text(value: object, node: AvroType) -> float | None:
    """The number that the text default of a float or double field stands for; Java reads these, NaN among them."""
    if isinstance(value, str) and isinstance(node, AvroPrimitive) and node.kind in _FLOATING and _number_text(value):
        return float(value.strip().rstrip("fFdD"))
    return None


def fits(value: object, node: AvroType, names: Mapping[str, AvroNamed], unfinished: frozenset[str]) -> bool:
    """Whether `value` is a default for `node`.

    `unfinished` are the records around the field: as in Java no default fits them, or it would contain itself.
    """
    if isinstance(node, AvroPrimitive):
        return PRIMITIVE_DEFAULTS[node.kind](value)
    if isinstance(node, AvroReference):
        return node.name not in unfinished and fits(value, names[node.name], names, unfinished)
    match node:
        case AvroUnion():
            return any(fits(value, branch, names, unfinished) for branch in node.branches)
        case AvroEnum() | AvroFixed():
            return isinstance(value, str)
        case AvroArray():
            return isinstance(value, list) and all(fits(item, node.items, names, unfinished) for item in value)
        case AvroMap():
            return isinstance(value, dict) and all(
                fits(item, node.values, names, unfinished) for item in value.values()
            )
        case AvroRecord():
            # A field the default leaves out takes its own default, which was checked where that field is declared.
            return isinstance(value, dict) and all(
                fits(value[field.name], field.type, names, unfinished) if field.name in value else field.has_default
                for field in node.fields
            )
        case _:
            assert_never(node)
