"""Converts values read from JSON to the types of their columns: one expression for each rule of `value_encodings`.

A value that the column's type cannot represent exactly becomes NULL here and is reported by `lost_values`; no
expression raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.value_encodings import RULES, has_rules, rule_of
from laminae.schema.column import columns_of, dotted
from laminae.schema.types import MAX_PRECISION, is_variant
from laminae.spark.catalyst.expression import (
    FALSE,
    TRUE,
    Expression,
    any_of,
    call,
    cases,
    each,
    each_two,
    first_text,
    literal,
    struct,
    when,
)
from laminae.spark.catalyst.literals import type_sql
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats import temporal_text
from laminae.spark.formats.temporal_text import (
    REASONS,
    UNITS,
    counted_micros,
    date_of,
    instant_of,
    time_of,
    wall_clock_of,
    zoned_instant_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.schema.column import Column

    ColumnOf = Callable[[int], Expression]
    Conversion = Callable[[Expression, pa.DataType, int], Expression]

# In microseconds, well below the values at which timestamp arithmetic overflows. PostgreSQL's infinity is beyond it.
LIMIT = 9 * 10**18
# The range of a PostgreSQL DATE, in days since 1970; its infinities are sent as days outside this range.
DAYS = (-2_440_588, 2_145_031_948)
DAY_MICROS = 86_400_000_000
MICROS = {"millis": 1000, "micros": 1, "nanos": -1000}
"""Microseconds per unit; a negative number is units per microsecond."""
EPOCH = Expression("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
INFINITY = Expression("DOUBLE('Infinity')")
TWO_TO_64 = Expression("CAST(18446744073709551616 AS DECIMAL(20, 0))")
WHOLE = r"^-?[0-9]{1,18}$"


def converted(node: Column, read: Expression) -> Expression:
    """The value of a column, in its type."""
    rule = rule_of(node.field)
    if rule is not None:
        return CONVERSIONS[rule[0]](read, node.type, rule[1])
    if not _has_rules(node):
        return read
    if node.kind == "struct":
        inner = [(child.name, converted(child, read.field(child.name))) for child in node.children]
        return when(read.is_there(), struct(inner))
    if node.kind == "map":
        return each_two("transform_values", [read], lambda _, value: converted(node.children[1], value))
    return each("transform", read, lambda item: converted(node.children[0], item))


def lost_values(schema: pa.Schema, read_of: ColumnOf, made_of: ColumnOf) -> Expression:
    """The error of the first column with a value that could not be converted; NULL if there is none.

    `read_of(i)` is column i as it was read, `made_of(i)` the result of `converted`.
    """
    problems = (lost_value(node, read_of(i), made_of(i)) for i, node in enumerate(columns_of(schema)))
    return first_text([problem for problem in problems if problem is not None])


def lost_value(node: Column, read: Expression, made: Expression) -> Expression | None:
    """The same for one column; None if its values need no conversion."""
    if rule_of(node.field) is None and not _has_rules(node):
        return None
    return when(_is_lost(node, read, made), _reason(node, read))


def _is_lost(node: Column, read: Expression, made: Expression) -> Expression:
    if rule_of(node.field) is not None:
        sent = read if not _is_read_as_variant(node) else when(~call("is_variant_null", read), read)
        return sent.is_there() & made.is_null()
    if not _has_rules(node):
        return FALSE
    if node.kind == "struct":
        return any_of([_is_lost(c, read.field(c.name), made.field(c.name)) for c in node.children])
    items = [call("map_values", values) if node.kind == "map" else values for values in (read, made)]
    pairs = each_two("zip_with", items, lambda one, other: _is_lost(node.children[-1], one, other))
    return call("array_contains", pairs, TRUE)


def _has_rules(node: Column) -> bool:
    return not is_variant(node.type) and has_rules([child.field for child in node.children])


def _is_read_as_variant(node: Column) -> bool:
    rule = rule_of(node.field)
    return rule is not None and rule[0] in VARIANTS


def _reason(node: Column, read: Expression) -> Expression:
    kind, name = spark_type(node.type).simpleString().upper(), dotted((node.name,))
    rule = rule_of(node.field)
    if rule is None or not pa.types.is_temporal(node.type) or not pa.types.is_string(RULES[rule[0]].read_as):
        advice = ADVICE.get(rule[0], "") if rule is not None else ""
        return literal(f"{name}{REASONS['type']}{kind}{advice}")
    takes_unit = rule[0].startswith("timestamp")
    unit = rule[0].removeprefix("timestamp").removeprefix("_") or None
    return temporal_text.reason(read, name, kind, unit, takes_unit)


def _days(read: Expression, kind: pa.DataType, _: int) -> Expression:
    number = read.try_cast("INT")
    return when(number.is_between(*DAYS), call("date_from_unix_date", number))


def _instant(unit: str) -> Conversion:
    def conversion(read: Expression, kind: pa.DataType, _: int) -> Expression:
        return _at(_micros(read, unit), kind)

    return conversion


def _at(micros: Expression, kind: pa.DataType) -> Expression:
    if kind.tz is not None:
        return call("timestamp_micros", micros)
    return call("timestampadd", Expression("MICROSECOND"), micros, EPOCH)


def _micros(read: Expression, unit: str) -> Expression:
    """The number in microseconds; NULL beyond `LIMIT`, or if it is not a whole number of microseconds."""
    number, times = read.try_cast("BIGINT"), MICROS[unit]
    if times < 0:
        exact = Expression(f"{number.sql} % {-times}").compared("=", 0)
        return when(exact, Expression(f"({number.sql} DIV {-times})"))
    most = LIMIT // times
    return when(number.is_between(-most, most), number if times == 1 else Expression(f"({number.sql} * {times})"))


def _clock(unit: str) -> Conversion:
    def conversion(read: Expression, kind: pa.DataType, _: int) -> Expression:
        micros = _micros(read, unit).sql
        seconds = Expression(f"CAST({micros} % 60000000 AS DECIMAL(16, 6)) / 1000000").cast("DECIMAL(16, 6)")
        hours, minutes = (Expression(f"CAST({part} AS INT)") for part in _hours_and_minutes(micros))
        # Spark raises on a time outside one day.
        fits = Expression(micros).is_between(0, DAY_MICROS - 1)
        return when(fits, call("make_time", hours, minutes, seconds))

    return conversion


def _hours_and_minutes(micros: str) -> tuple[str, str]:
    return f"({micros} DIV 3600000000)", f"(({micros} DIV 60000000) % 60)"


def _zoned(read: Expression, kind: pa.DataType, _: int) -> Expression:
    return zoned_instant_of(read)


def _iso(read: Expression, kind: pa.DataType, _: int) -> Expression:
    """Text without a time zone; Debezium appends Z nevertheless."""
    return _text_without_zone(call("regexp_replace", read, literal("Z$"), literal("")), kind, 0)


def _text_without_zone(read: Expression, kind: pa.DataType, _: int) -> Expression:
    if pa.types.is_date(kind):
        return date_of(read)
    return time_of(read) if pa.types.is_time(kind) else wall_clock_of(read)


def _timestamp_text(read: Expression, kind: pa.DataType, _: int) -> Expression:
    return instant_of(read) if kind.tz is not None else wall_clock_of(read)


def _timestamp(unit: str) -> Conversion:
    """Converts text, or a number in this unit since 1970."""

    def conversion(read: Expression, kind: pa.DataType, _: int) -> Expression:
        return call("coalesce", _timestamp_text(read, kind, 0), _at(counted_micros(read, unit), kind))

    return conversion


def _unscaled(content: Expression) -> Expression:
    """The decimal text of an integer of at most sixteen bytes, in big-endian two's complement."""
    digits = call("hex", content)
    sign = Expression(f"IF(substring({digits.sql}, 1, 1) >= '8', 'F', '0')")
    short = call("conv", call("lpad", digits, literal(16), sign), literal(16), literal(-10))
    padded = call("lpad", digits, literal(32), sign)
    high, low = (call("substring", padded, literal(at), literal(16)) for at in (1, 17))
    upper = call("conv", high, literal(16), literal(-10)).cast("DECIMAL(20, 0)")
    lower = call("conv", low, literal(16), literal(10)).cast("DECIMAL(20, 0)")
    long = call("try_add", call("try_multiply", upper, TWO_TO_64), lower).cast("STRING")
    size = call("octet_length", content)
    return cases([(size.is_between(1, 8), short), (size.is_between(9, 16), long)])


def _decimal(read: Expression, kind: pa.DataType, scale: int) -> Expression:
    if pa.types.is_string(kind):
        return _plain_text(_unscaled(read), literal(scale))
    return _number(call("concat", _unscaled(read), literal(f"E{-scale}")), kind, scale)


def _variable_decimal(read: Expression, kind: pa.DataType, _: int) -> Expression:
    scale, unscaled = read.field("scale"), _unscaled(read.field("value"))
    if pa.types.is_string(kind):
        return _plain_text(unscaled, scale)
    written = call("concat", unscaled, literal("E"), Expression(f"CAST(-({scale.sql}) AS STRING)"))
    return _exactly(written, kind, scale.compared("<=", _digits_kept(kind)))


def _plain_text(unscaled: Expression, scale: Expression) -> Expression:
    """The text of a number in PostgreSQL's format."""
    digits, places = call("ltrim", literal("-"), unscaled), call("greatest", scale, literal(0))
    padded = f"lpad({digits.sql}, greatest(length({digits.sql}), {places.sql} + 1), '0')"
    whole = Expression(f"left({padded}, length({padded}) - {places.sql})")
    part = when(places.compared(">", 0), Expression(f"concat('.', right({padded}, {places.sql}))"), literal(""))
    zeros = call("repeat", literal("0"), Expression(f"greatest(-({scale.sql}), 0)"))
    sign = when(call("startswith", unscaled, literal("-")), literal("-"), literal(""))
    return call("concat", sign, whole, zeros, part)


def _number(text: Expression, kind: pa.DataType, scale: int | None = None) -> Expression:
    """The number in a text; `scale` is its number of fraction digits, if known."""
    number = text.try_cast(type_sql(spark_type(kind)))
    if not pa.types.is_decimal(kind):
        # The cast turns a number that is too large into infinity.
        return when(~call("abs", number).compared("=", INFINITY) | call("contains", text, literal("Infinity")), number)
    if scale is not None and scale <= kind.scale:
        return number
    if scale is not None:
        return _exactly(text, kind, literal(scale).compared("<=", _digits_kept(kind)))
    beyond = rf"\.[0-9]{{{_digits_kept(kind) + 1}}}|[0-9][eE]-"
    return _exactly(text, kind, ~call("rlike", text, literal(beyond)))


def _exactly(text: Expression, kind: pa.DataType, is_whole: Expression) -> Expression:
    """The number, or NULL if the cast to `kind` would round it.

    The result is compared with a cast that keeps all fraction digits for which the column's integer digits leave room;
    `is_whole` says that the number has no more fraction digits than that.
    """
    number = text.try_cast(type_sql(spark_type(kind)))
    if not pa.types.is_decimal(kind):
        return number
    wide = text.try_cast(f"DECIMAL({MAX_PRECISION}, {_digits_kept(kind)})")
    return when(is_whole & wide.compared("=", number), number)


def _digits_kept(kind: pa.DataType) -> int:
    return MAX_PRECISION - (kind.precision - kind.scale) if pa.types.is_decimal(kind) else MAX_PRECISION


def _text(read: Expression, kind: pa.DataType, _: int) -> Expression:
    return read.cast("STRING")


def _any_date(read: Expression, kind: pa.DataType, _: int) -> Expression:
    return _by_looks(read, _days(read, kind, 0), _iso(read, kind, 0))


def _any_instant(unit: str) -> Conversion:
    def conversion(read: Expression, kind: pa.DataType, _: int) -> Expression:
        written = instant_of(read) if kind.tz is not None else _iso(read, kind, 0)
        return _by_looks(read, _at(_micros(read, unit), kind), written)

    return conversion


def _any_clock(unit: str) -> Conversion:
    def conversion(read: Expression, kind: pa.DataType, _: int) -> Expression:
        return _by_looks(read, _clock(unit)(read, kind, 0), _iso(read, kind, 0))

    return conversion


def _by_looks(read: Expression, number: Expression, text: Expression) -> Expression:
    return cases([(call("rlike", read, literal(WHOLE)), number)], text)


def _any_decimal(is_base64: bool) -> Conversion:
    def conversion(read: Expression, kind: pa.DataType, _: int) -> Expression:
        text = call("try_variant_get", read, literal("$"), literal("string"))
        number = _number(text, kind)
        if not is_base64:
            return number
        content = call("try_to_binary", text, literal("base64"))
        return cases([(_is_text(read), _decimal(content, kind, kind.scale))], number)

    return conversion


def _is_text(read: Expression) -> Expression:
    return call("schema_of_variant", read).compared("=", literal("STRING"))


CONVERSIONS: dict[str, Conversion] = {
    "days": _days,
    **{unit: _instant(unit) for unit in MICROS},
    "zoned": _zoned,
    "iso": _iso,
    **{f"time_{unit}": _clock(unit) for unit in MICROS},
    "decimal": _decimal,
    "variable_decimal": _variable_decimal,
    "number": lambda read, kind, _: _number(read.cast("STRING"), kind),
    "text": _text,
    "any_date": _any_date,
    **{f"any_timestamp_{unit}": _any_instant(unit) for unit in MICROS},
    **{f"any_time_{unit}": _any_clock(unit) for unit in MICROS},
    "any_decimal_base64": _any_decimal(is_base64=True),
    "any_decimal_text": _any_decimal(is_base64=False),
    "date": _text_without_zone,
    "time": _text_without_zone,
    "timestamp": _timestamp_text,
    **{f"timestamp_{unit}": _timestamp(unit) for unit in UNITS},
}
# Events without a schema do not say how a decimal is encoded. If a value does not fit, the error names the option.
ADVICE = {
    "any_decimal_base64": " in base64; use debezium.decimal = 'text' for numbers written as text",
    "any_decimal_text": " as text; use debezium.decimal = 'base64' for numbers encoded in base64",
}
VARIANTS: Sequence[str] = ("any_decimal_base64", "any_decimal_text")
