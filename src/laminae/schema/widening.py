"""Which type may become which without losing a value, per system: literal tables, and the one way to ask them.

The names on the left and right are Arrow's own type texts. Parametric types (decimal, timestamp) follow small rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from laminae.errors import InvalidOption
from laminae.schema.arguments import require
from laminae.schema.column import Column, column

Parametric = Callable[[pa.DataType, pa.DataType], bool]


def _decimal_grows(old: pa.DataType, new: pa.DataType) -> bool:
    """Precision may grow; scale may grow too while the integer digits do not shrink."""
    if not (pa.types.is_decimal(old) and pa.types.is_decimal(new)) or old == new:
        return False
    digits = new.precision - new.scale >= old.precision - old.scale
    return bool(new.scale >= old.scale and digits and new.bit_width >= old.bit_width)


def _decimal_precision_grows(old: pa.DataType, new: pa.DataType) -> bool:
    return _decimal_grows(old, new) and bool(old.scale == new.scale)


def _timestamp_refines(old: pa.DataType, new: pa.DataType) -> bool:
    if not (pa.types.is_timestamp(old) and pa.types.is_timestamp(new)):
        return False
    return (old.tz is None) == (new.tz is None) and UNITS.index(old.unit) < UNITS.index(new.unit)


def _from_null(old: pa.DataType, new: pa.DataType) -> bool:
    return pa.types.is_null(old) and not pa.types.is_null(new)


def _integer_to_decimal(old: pa.DataType, new: pa.DataType) -> bool:
    """Delta stores BYTE, SHORT and INT in ten decimal digits and LONG in twenty."""
    digits = {"int8": 10, "int16": 10, "int32": 10, "int64": 20}.get(str(old))
    return digits is not None and pa.types.is_decimal(new) and bool(new.precision - new.scale >= digits)


UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True, slots=True)
class Widening:
    """One system's table: `pairs` maps a type to those it may become, `rules` name what no list can hold."""

    pairs: dict[str, str]
    rules: dict[str, Parametric] = field(default_factory=dict)

    def allows(self, old: pa.DataType, new: pa.DataType) -> bool:
        return str(new) in self.pairs.get(str(old), "").split() or any(rule(old, new) for rule in self.rules.values())


WIDENINGS: dict[str, Widening] = {
    "arrow": Widening(
        {
            "int8": "int16 int32 int64 float double",
            "int16": "int32 int64 float double",
            "int32": "int64 double",
            "uint8": "uint16 uint32 uint64 int16 int32 int64",
            "uint16": "uint32 uint64 int32 int64",
            "uint32": "uint64 int64",
            "halffloat": "float double",
            "float": "double",
            "string": "large_string",
            "binary": "large_binary",
            "date32[day]": "date64[ms]",
        },
        {
            "decimal(p, s) to decimal(p', s'), s' >= s and p' - s' >= p - s": _decimal_grows,
            "timestamp to a finer unit, with or without a time zone on both sides": _timestamp_refines,
            "null to any type": _from_null,
        },
    ),
    "avro": Widening(
        {
            "int32": "int64 float double",
            "int64": "float double",
            "float": "double",
            "string": "binary",
            "binary": "string",
        }
    ),
    "iceberg-v2": Widening(
        {"int32": "int64", "float": "double"},
        {"decimal(p, s) to decimal(p', s), p' > p": _decimal_precision_grows},
    ),
    "iceberg-v3": Widening(
        {"int32": "int64", "float": "double", "date32[day]": "timestamp[us] timestamp[ns]"},
        {"decimal(p, s) to decimal(p', s), p' > p": _decimal_precision_grows, "unknown (null) to any type": _from_null},
    ),
    "delta": Widening(
        {
            "int8": "int16 int32 int64 double",
            "int16": "int32 int64 double",
            "int32": "int64 double",
            "float": "double",
            "date32[day]": "timestamp[us]",
        },
        {
            "decimal(p, s) to decimal(p', s'), s' >= s and p' - s' >= p - s": _decimal_grows,
            "byte, short, int to decimal(10 + k, k); long to decimal(20 + k, k)": _integer_to_decimal,
        },
    ),
}

# The same values in another memory layout: both directions are compatible under every mode.
LAYOUTS = ({"string", "large_string", "string_view"}, {"binary", "large_binary", "binary_view"})
LIST_LAYOUTS = frozenset({"list", "large_list", "list_view", "large_list_view"})
MAP_LAYOUTS = frozenset({"map", "sorted_map"})


class TypeRelation(Enum):
    SAME = "same"
    PHYSICAL = "physical"
    WIDER = "wider"
    NARROWER = "narrower"
    UNRELATED = "unrelated"


def relation(old: Column, new: Column) -> TypeRelation:
    """How the type of `new` relates to that of `old`, children left aside (the diff looks at those one by one)."""
    if {old.kind, new.kind} <= MAP_LAYOUTS and relation(old.children[0], new.children[0]) is TypeRelation.UNRELATED:
        # A map cannot be filled without its keys, so other keys make another map.
        return TypeRelation.UNRELATED
    if old.kind == new.kind:
        return TypeRelation.SAME
    if old.children or new.children:
        if {old.kind, new.kind} <= LIST_LAYOUTS or {old.kind, new.kind} <= MAP_LAYOUTS:
            return TypeRelation.PHYSICAL
        if old.kind == "null":
            return TypeRelation.WIDER
        return TypeRelation.NARROWER if new.kind == "null" else TypeRelation.UNRELATED
    key = (old.kind, new.kind)
    known = _leaf_relations.get(key)
    if known is None:
        known = _leaf_relations[key] = _leaf_relation(_decoded(old.type), _decoded(new.type))
    return known


# Asking Arrow costs 10 us a pair; the kinds of leaves are few and their texts say all.
_leaf_relations: dict[tuple[str, str], TypeRelation] = {}


def _leaf_relation(old: pa.DataType, new: pa.DataType) -> TypeRelation:
    if _is_same_value_space(old, new):
        return TypeRelation.PHYSICAL
    table = WIDENINGS["arrow"]
    if table.allows(old, new):
        return TypeRelation.WIDER
    if table.allows(new, old) or (_is_number(old) and _is_number(new)):
        return TypeRelation.NARROWER
    return TypeRelation.UNRELATED


def is_safe_widening(from_type: pa.DataType, to_type: pa.DataType, system: str = "arrow") -> bool:
    """Whether every value of `from_type` is a value of `to_type` in that system, nested types included."""
    require("is_safe_widening", pa.DataType, from_type=from_type, to_type=to_type)
    table = WIDENINGS.get(system) if isinstance(system, str) else None
    if table is None:
        advice = f"Use one of {', '.join(WIDENINGS)}."
        raise InvalidOption(option="system", owner="is_safe_widening", problem=f"no system {system!r}", advice=advice)
    return _widens(column(pa.field("_", from_type)), column(pa.field("_", to_type)), table)


def _widens(old: Column, new: Column, table: Widening) -> bool:
    if old.kind != new.kind or not old.children:
        return table.allows(old.type, new.type)
    if old.type == new.type or len(old.children) != len(new.children):
        return False
    return all(
        a.name == b.name and a.nullable <= b.nullable and (a.type == b.type or _widens(a, b, table))
        for a, b in zip(old.children, new.children, strict=True)
    )


def _decoded(arrow: pa.DataType) -> pa.DataType:
    return arrow.value_type if pa.types.is_dictionary(arrow) else arrow


def _is_same_value_space(old: pa.DataType, new: pa.DataType) -> bool:
    if old == new or any({str(old), str(new)} <= layout for layout in LAYOUTS):
        return True
    zoned = pa.types.is_timestamp(old) and pa.types.is_timestamp(new) and old.tz is not None and new.tz is not None
    return zoned and bool(old.unit == new.unit)


def _is_number(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow))
