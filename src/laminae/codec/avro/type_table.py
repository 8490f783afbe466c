"""The table of Avro types without inner types: their column types, and the types that Spark's `from_avro` returns.

A logical type that does not match its underlying type is ignored, as the specification says. No Spark here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.avro.nodes import AvroEnum, AvroFixed, AvroKind, AvroPrimitive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.schema.avro.nodes import AvroDefinite, AvroSchema, AvroType, JsonValue

MAX_PRECISION = 38
DURATION_BYTES, UUID_BYTES = 12, 16
FIXED, ENUM = "fixed", "enum"

INSTANT, LOCAL, TIME = pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.time64("ns")
# Three unsigned numbers that no single interval type of Spark can hold.
DURATION = pa.struct([pa.field(name, pa.int64(), nullable=False) for name in ("months", "days", "millis")])


@dataclass(frozen=True, slots=True)
class AvroForm:
    """One row. Where `from_avro` returns another type than the column has, the decoder converts."""

    type: str
    logical: str | None
    arrow: pa.DataType
    from_avro: str


FORMS: tuple[AvroForm, ...] = (
    AvroForm("null", None, pa.null(), "VOID"),
    AvroForm("boolean", None, pa.bool_(), "BOOLEAN"),
    AvroForm("int", None, pa.int32(), "INT"),
    AvroForm("int", "date", pa.date32(), "DATE"),
    AvroForm("int", "time-millis", TIME, "INT"),
    AvroForm("long", None, pa.int64(), "BIGINT"),
    AvroForm("long", "time-micros", TIME, "TIME(6)"),
    AvroForm("long", "timestamp-millis", INSTANT, "TIMESTAMP"),
    AvroForm("long", "timestamp-micros", INSTANT, "TIMESTAMP"),
    AvroForm("long", "local-timestamp-millis", LOCAL, "TIMESTAMP_NTZ"),
    AvroForm("long", "local-timestamp-micros", LOCAL, "TIMESTAMP_NTZ"),
    # Spark has no nanosecond timestamps: the number is kept as BIGINT rather than losing three digits.
    AvroForm("long", "timestamp-nanos", pa.int64(), "BIGINT"),
    AvroForm("long", "local-timestamp-nanos", pa.int64(), "BIGINT"),
    AvroForm("float", None, pa.float32(), "FLOAT"),
    AvroForm("double", None, pa.float64(), "DOUBLE"),
    AvroForm("bytes", None, pa.binary(), "BINARY"),
    AvroForm("string", None, pa.string(), "STRING"),
    AvroForm("string", "uuid", pa.string(), "STRING"),
    AvroForm(ENUM, None, pa.string(), "STRING"),
    AvroForm(FIXED, None, pa.binary(), "BINARY"),
    AvroForm(FIXED, "uuid", pa.binary(), "BINARY"),
    AvroForm(FIXED, "duration", DURATION, "BINARY"),
)
_BY_TYPE = {(form.type, form.logical): form for form in FORMS}
# Logical types that require a certain size of the underlying fixed.
_SIZES = {"duration": DURATION_BYTES, "uuid": UUID_BYTES}

# A union of two number types is read as the wider one.
PROMOTIONS = (
    (frozenset((AvroKind.INT, AvroKind.LONG)), pa.int64()),
    (frozenset((AvroKind.FLOAT, AvroKind.DOUBLE)), pa.float64()),
)


@dataclass(frozen=True, slots=True)
class DecimalForm:
    """DECIMAL on bytes or fixed: `from_avro` returns the same type."""

    arrow: pa.DataType


def form_of(node: AvroPrimitive | AvroEnum | AvroFixed) -> AvroForm | DecimalForm:
    """The row of a type. Raises `ValueError` for a decimal with more digits than a column can have."""
    kind, logical = _kind(node), node.props.get("logicalType")
    if logical == "decimal" and kind in (FIXED, AvroKind.BYTES):
        decimal = _decimal(node.props, node.size if isinstance(node, AvroFixed) else None)
        if decimal is not None:
            return DecimalForm(decimal)
    if not isinstance(logical, str) or (isinstance(node, AvroFixed) and _SIZES.get(logical) != node.size):
        logical = None
    return _BY_TYPE.get((kind, logical)) or _BY_TYPE[kind, None]


def members(branches: tuple[AvroType, ...], schema: AvroSchema) -> tuple[AvroDefinite, ...]:
    """The types of a union other than null."""
    return tuple(branch for branch in map(schema.resolve, branches) if not is_null(branch))


def promoted(real: tuple[AvroDefinite, ...]) -> pa.DataType | None:
    """The number type of a union of two, regardless of their logical types: `from_avro` ignores those as well."""
    kinds = [branch.kind for branch in real if isinstance(branch, AvroPrimitive)]
    if len(real) != 2 or len(kinds) != 2:
        return None
    return next((arrow for pair, arrow in PROMOTIONS if pair == frozenset(kinds)), None)


def member_name(place: int) -> str:
    return f"member{place}"


def is_null(node: AvroDefinite) -> bool:
    return isinstance(node, AvroPrimitive) and node.kind is AvroKind.NULL


def _kind(node: AvroPrimitive | AvroEnum | AvroFixed) -> str:
    if isinstance(node, AvroPrimitive):
        return str(node.kind)
    return ENUM if isinstance(node, AvroEnum) else FIXED


def _decimal(props: Mapping[str, JsonValue], size: int | None) -> pa.DataType | None:
    precision, scale = props.get("precision"), props.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
        return None
    if size is not None and (size == 0 or 10**precision > 2 ** (8 * size - 1)):
        return None
    if precision > MAX_PRECISION:
        raise ValueError(f"a decimal of {precision} digits, and a column has at most {MAX_PRECISION}")
    return pa.decimal128(precision, scale)
