"""From what was read of Debezium's events to the types of columns: one expression for each rule of `codec.sent_values`.

A value that has no exact form in the column becomes NULL here and is named by `lost_values`; no expression raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.sent_values import has_rules, rule_of
from laminae.schema.column import columns_of, dotted
from laminae.schema.types import MAX_PRECISION, is_variant
from laminae.spark.expression import (
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
from laminae.spark.json_checks import REASONS
from laminae.spark.literals import type_sql
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.schema.column import Column

    ColumnOf = Callable[[int], Expression]
    Conversion = Callable[[Expression, pa.DataType, int], Expression]

# In microseconds, far from where arithmetic on times would overflow: PostgreSQL's infinity lies beyond.
LIMIT = 9 * 10**18
# The days that PostgreSQL has: its infinities come as others.
DAYS = (-2_440_588, 2_145_031_948)
DAY_MICROS = 86_400_000_000
MICROS = {"millis": 1000, "micros": 1, "nanos": -1000}
"""How many microseconds each unit has; below zero: how many of it a microsecond has."""
EPOCH = Expression("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
INFINITY = Expression("DOUBLE('Infinity')")
TWO_TO_64 = Expression("CAST(18446744073709551616 AS DECIMAL(20, 0))")
# A time with a zone behind it; the day before it may look like one.
ZONED = r":[0-9.]+ *(Z|[+-][0-9:]+)$"
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
    """Why a row does not have the values that were sent: the first column with one that is none. NULL: it has.

    `read_of(i)` is column i as it was read, `made_of(i)` what `converted` made of it.
    """
    found = []
    for i, node in enumerate(columns_of(schema)):
        if rule_of(node.field) is not None or _has_rules(node):
            found.append(when(_is_lost(node, read_of(i), made_of(i)), literal(_reason(node))))
    return first_text(found)


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


def _reason(node: Column) -> str:
    kind = spark_type(node.type).simpleString().upper()
    return f"{dotted((node.name,))}{REASONS['type']}{kind}"


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
    """NULL beyond the limit, and where there is a part of a microsecond."""
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
        # Spark raises on a time beyond the day.
        fits = Expression(micros).is_between(0, DAY_MICROS - 1)
        return when(fits, call("make_time", hours, minutes, seconds))

    return conversion


def _hours_and_minutes(micros: str) -> tuple[str, str]:
    return f"({micros} DIV 3600000000)", f"(({micros} DIV 60000000) % 60)"


def _zoned(read: Expression, kind: pa.DataType, _: int) -> Expression:
    return when(call("rlike", read, literal(ZONED)), read.try_cast("TIMESTAMP"))


def _iso(read: Expression, kind: pa.DataType, _: int) -> Expression:
    """Without a zone; Debezium writes Z all the same."""
    text = call("regexp_replace", read, literal("Z$"), literal(""))
    return text.try_cast(type_sql(spark_type(kind)))


def _utc(read: Expression, kind: pa.DataType, _: int) -> Expression:
    """Text that may have a zone; without one it is UTC, whatever the session's zone is."""
    local = _iso(read, pa.timestamp("us"), 0)
    micros = call("timestampdiff", Expression("MICROSECOND"), EPOCH, local)
    return cases([(call("rlike", read, literal(ZONED)), read.try_cast("TIMESTAMP"))], call("timestamp_micros", micros))


def _unscaled(content: Expression) -> Expression:
    """The text of a whole number of at most sixteen bytes, the largest first, below zero in two's complement."""
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
    """A number as PostgreSQL writes it."""
    digits, places = call("ltrim", literal("-"), unscaled), call("greatest", scale, literal(0))
    padded = f"lpad({digits.sql}, greatest(length({digits.sql}), {places.sql} + 1), '0')"
    whole = Expression(f"left({padded}, length({padded}) - {places.sql})")
    part = when(places.compared(">", 0), Expression(f"concat('.', right({padded}, {places.sql}))"), literal(""))
    zeros = call("repeat", literal("0"), Expression(f"greatest(-({scale.sql}), 0)"))
    sign = when(call("startswith", unscaled, literal("-")), literal("-"), literal(""))
    return call("concat", sign, whole, zeros, part)


def _number(text: Expression, kind: pa.DataType, scale: int | None = None) -> Expression:
    """A number from its text; `scale` is how many digits it has behind its point, where that is known."""
    made = text.try_cast(type_sql(spark_type(kind)))
    if not pa.types.is_decimal(kind):
        # A number that is too large becomes infinite.
        return when(~call("abs", made).compared("=", INFINITY) | call("contains", text, literal("Infinity")), made)
    if scale is not None and scale <= kind.scale:
        return made
    if scale is not None:
        return _exactly(text, kind, literal(scale).compared("<=", _digits_kept(kind)))
    beyond = rf"\.[0-9]{{{_digits_kept(kind) + 1}}}|[0-9][eE]-"
    return _exactly(text, kind, ~call("rlike", text, literal(beyond)))


def _exactly(text: Expression, kind: pa.DataType, is_whole: Expression) -> Expression:
    """A cast rounds: the number must be the same with all the digits that the column's whole ones leave room for."""
    made = text.try_cast(type_sql(spark_type(kind)))
    if not pa.types.is_decimal(kind):
        return made
    wide = text.try_cast(f"DECIMAL({MAX_PRECISION}, {_digits_kept(kind)})")
    return when(is_whole & wide.compared("=", made), made)


def _digits_kept(kind: pa.DataType) -> int:
    return MAX_PRECISION - (kind.precision - kind.scale) if pa.types.is_decimal(kind) else MAX_PRECISION


def _text(read: Expression, kind: pa.DataType, _: int) -> Expression:
    return read.cast("STRING")


def _any_date(read: Expression, kind: pa.DataType, _: int) -> Expression:
    return _by_looks(read, _days(read, kind, 0), _iso(read, kind, 0))


def _any_instant(unit: str) -> Conversion:
    def conversion(read: Expression, kind: pa.DataType, _: int) -> Expression:
        written = _utc(read, kind, 0) if kind.tz is not None else _iso(read, kind, 0)
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
}
VARIANTS: Sequence[str] = ("any_decimal_base64", "any_decimal_text")
