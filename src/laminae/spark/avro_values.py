"""What `from_avro` gives, in the types that columns have: the few rows of `codec.avro_forms` where the two differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.codec.avro_forms import AvroForm, form_of, member_name, members, promoted
from laminae.schema.avro import AvroArray, AvroEnum, AvroFixed, AvroMap, AvroPrimitive, AvroRecord
from laminae.spark.expression import Expression, call, each, each_two, literal, struct, when

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.schema.avro import AvroSchema, AvroType

DAY_MILLIS = 86_400_000


def declared(node: AvroType, schema: AvroSchema, read: Expression) -> Expression:
    """The value of a type in the type of its column; NULL where it has no such value."""
    if not differs(node, schema):
        return read
    found = schema.resolve(node)
    if isinstance(found, AvroPrimitive | AvroEnum | AvroFixed):
        form = form_of(found)
        return CONVERSIONS[form.type, form.logical](read) if isinstance(form, AvroForm) else read
    if isinstance(found, AvroRecord):
        inner = [(field.name, declared(field.type, schema, read.field(field.name))) for field in found.fields]
        return when(read.is_there(), struct(inner))
    if isinstance(found, AvroArray):
        return each("transform", read, lambda item: declared(found.items, schema, item))
    if isinstance(found, AvroMap):
        return each_two("transform_values", [read], lambda _, value: declared(found.values, schema, value))
    real = members(found.branches, schema)
    if len(real) == 1:
        return declared(real[0], schema, read)
    names = [member_name(place) for place in range(len(real))]
    chosen = [(name, declared(each_, schema, read.field(name))) for name, each_ in zip(names, real, strict=True)]
    return when(read.is_there(), struct(chosen))


def differs(node: AvroType, schema: AvroSchema) -> bool:
    """Whether a value at or below this type is read as another type than its column has."""
    found = schema.resolve(node)
    if isinstance(found, AvroPrimitive | AvroEnum | AvroFixed):
        form = form_of(found)
        return isinstance(form, AvroForm) and (form.type, form.logical) in CONVERSIONS
    inner: Sequence[AvroType]
    if isinstance(found, AvroRecord):
        inner = [field.type for field in found.fields]
    elif isinstance(found, AvroArray):
        inner = [found.items]
    elif isinstance(found, AvroMap):
        inner = [found.values]
    else:
        inner = members(found.branches, schema)
        if promoted(tuple(map(schema.resolve, inner))) is not None:
            return False
    return any(differs(each_, schema) for each_ in inner)


def _time_of_millis(read: Expression) -> Expression:
    # Spark raises on a time beyond the day.
    seconds = Expression(f"CAST({read.sql} % 60000 AS DECIMAL(16, 6)) / 1000").cast("DECIMAL(16, 6)")
    made = call("make_time", _whole(read, 3_600_000), _whole(read, 60_000, 60), seconds)
    return when(read.is_between(0, DAY_MILLIS - 1), made)


def _whole(read: Expression, unit: int, most: int | None = None) -> Expression:
    counted = f"CAST({read.sql} DIV {unit} AS INT)"
    return Expression(counted if most is None else f"({counted} % {most})")


def _duration(read: Expression) -> Expression:
    """Three unsigned numbers of four bytes, the smallest byte first."""
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
