"""Converts the output of `from_avro` to the column types, for the few rows of `codec.avro.type_table` that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.codec.avro.type_table import AvroForm, form_of, member_name, members, promoted
from laminae.schema.avro import AvroArray, AvroEnum, AvroFixed, AvroMap, AvroPrimitive, AvroRecord
from laminae.spark.catalyst.expression import Expression, call, each, each_two, literal, struct, when

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.schema.avro import AvroSchema, AvroType

DAY_MILLIS = 86_400_000


def declared(node: AvroType, schema: AvroSchema, read: Expression) -> Expression:
    """A value in the type of its column; NULL if that type cannot represent it."""
    if not differs(node, schema):
        return read
    resolved = schema.resolve(node)
    if isinstance(resolved, AvroPrimitive | AvroEnum | AvroFixed):
        form = form_of(resolved)
        return CONVERSIONS[form.type, form.logical](read) if isinstance(form, AvroForm) else read
    if isinstance(resolved, AvroRecord):
        inner = [(field.name, declared(field.type, schema, read.field(field.name))) for field in resolved.fields]
        return when(read.is_there(), struct(inner))
    if isinstance(resolved, AvroArray):
        return each("transform", read, lambda item: declared(resolved.items, schema, item))
    if isinstance(resolved, AvroMap):
        return each_two("transform_values", [read], lambda _, value: declared(resolved.values, schema, value))
    real = members(resolved.branches, schema)
    if len(real) == 1:
        return declared(real[0], schema, read)
    names = [member_name(place) for place in range(len(real))]
    chosen = [(name, declared(branch, schema, read.field(name))) for name, branch in zip(names, real, strict=True)]
    return when(read.is_there(), struct(chosen))


def differs(node: AvroType, schema: AvroSchema) -> bool:
    """Whether `from_avro` returns another type than the column's for this type or one nested in it."""
    resolved = schema.resolve(node)
    if isinstance(resolved, AvroPrimitive | AvroEnum | AvroFixed):
        form = form_of(resolved)
        return isinstance(form, AvroForm) and (form.type, form.logical) in CONVERSIONS
    inner: Sequence[AvroType]
    if isinstance(resolved, AvroRecord):
        inner = [field.type for field in resolved.fields]
    elif isinstance(resolved, AvroArray):
        inner = [resolved.items]
    elif isinstance(resolved, AvroMap):
        inner = [resolved.values]
    else:
        inner = members(resolved.branches, schema)
        if promoted(tuple(map(schema.resolve, inner))) is not None:
            return False
    return any(differs(inner_type, schema) for inner_type in inner)


def _time_of_millis(read: Expression) -> Expression:
    # Spark raises on a time outside one day.
    seconds = Expression(f"CAST({read.sql} % 60000 AS DECIMAL(16, 6)) / 1000").cast("DECIMAL(16, 6)")
    time_of_day = call("make_time", _whole(read, 3_600_000), _whole(read, 60_000, 60), seconds)
    return when(read.is_between(0, DAY_MILLIS - 1), time_of_day)


def _whole(read: Expression, unit: int, most: int | None = None) -> Expression:
    counted = f"CAST({read.sql} DIV {unit} AS INT)"
    return Expression(counted if most is None else f"({counted} % {most})")


def _duration(read: Expression) -> Expression:
    """Three unsigned 4-byte little-endian integers."""
    return when(read.is_there(), struct((name, _little(read, at)) for name, at in DURATION_PARTS))


DURATION_PARTS = (("months", 0), ("days", 4), ("millis", 8))


def _little(read: Expression, at: int) -> Expression:
    digits = call("hex", read)
    places = [literal(2 * (at + byte) + 1) for byte in reversed(range(4))]
    text = call("concat", *(call("substring", digits, place, literal(2)) for place in places))
    return call("conv", text, literal(16), literal(10)).cast("BIGINT")


CONVERSIONS: dict[tuple[str, str | None], Callable[[Expression], Expression]] = {
    ("int", "time-millis"): _time_of_millis,
    ("fixed", "duration"): _duration,
}
