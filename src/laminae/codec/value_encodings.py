"""How values are encoded in JSON records and Debezium events where that differs from the column's own type. No Spark.

The encoding rule of a value is in the metadata of its field, at any depth: it travels with the schema and is ignored by
schema comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import DEFAULT, INITIAL_DEFAULT, column
from laminae.schema.nesting import container, inner_fields, is_list
from laminae.schema.types import VARIANT, is_variant
from laminae.schema.widening import TypeRelation, relation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Test = Callable[[pa.DataType], bool]

SENT = b"laminae:sent"
UNAVAILABLE = "__debezium_unavailable_value"
"""The placeholder in an event for a value that is stored out of line and did not change (TOAST)."""
# The unscaled number as big-endian bytes, and its scale, which a column with one fixed scale does not need.
VARIABLE_DECIMAL = pa.struct([pa.field("scale", pa.int32()), pa.field("value", pa.binary())])


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _is_clock(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def _is_written_number(kind: pa.DataType) -> bool:
    return _is_number(kind) or pa.types.is_string(kind)


@dataclass(frozen=True, slots=True)
class SentRule:
    """The type requested from the JSON reader, and the column types that such a value can be converted to."""

    read_as: pa.DataType
    fits: Test


RULES: dict[str, SentRule] = {
    # The message states the type of a value.
    "days": SentRule(pa.int32(), pa.types.is_date),
    "millis": SentRule(pa.int64(), pa.types.is_timestamp),
    "micros": SentRule(pa.int64(), pa.types.is_timestamp),
    "nanos": SentRule(pa.int64(), pa.types.is_timestamp),
    "zoned": SentRule(pa.string(), _is_instant),
    "iso": SentRule(pa.string(), _is_clock),
    "time_millis": SentRule(pa.int64(), pa.types.is_time),
    "time_micros": SentRule(pa.int64(), pa.types.is_time),
    "time_nanos": SentRule(pa.int64(), pa.types.is_time),
    "decimal": SentRule(pa.binary(), _is_written_number),
    "variable_decimal": SentRule(VARIABLE_DECIMAL, _is_written_number),
    "number": SentRule(pa.string(), _is_number),
    "text": SentRule(pa.string(), pa.types.is_string),
    # The encoding follows from the column's type and the form of the value.
    "any_date": SentRule(pa.string(), pa.types.is_date),
    "any_timestamp_millis": SentRule(pa.string(), pa.types.is_timestamp),
    "any_timestamp_micros": SentRule(pa.string(), pa.types.is_timestamp),
    "any_timestamp_nanos": SentRule(pa.string(), pa.types.is_timestamp),
    "any_time_millis": SentRule(pa.string(), pa.types.is_time),
    "any_time_micros": SentRule(pa.string(), pa.types.is_time),
    "any_time_nanos": SentRule(pa.string(), pa.types.is_time),
    "any_decimal_base64": SentRule(VARIANT, pa.types.is_decimal),
    "any_decimal_text": SentRule(VARIANT, pa.types.is_decimal),
    # Plain JSON: text, or a number if an option gives its unit.
    "date": SentRule(pa.string(), pa.types.is_date),
    "time": SentRule(pa.string(), pa.types.is_time),
    "timestamp": SentRule(pa.string(), pa.types.is_timestamp),
    "timestamp_seconds": SentRule(pa.string(), pa.types.is_timestamp),
    "timestamp_millis": SentRule(pa.string(), pa.types.is_timestamp),
    "timestamp_micros": SentRule(pa.string(), pa.types.is_timestamp),
    "timestamp_nanos": SentRule(pa.string(), pa.types.is_timestamp),
}
"""By name; a scale may follow after a colon."""
PLAIN_RULES = frozenset(name for name in RULES if name in ("date", "time") or name.startswith("timestamp"))


def rule_of(field: pa.Field) -> tuple[str, int] | None:
    """The name of a field's rule and its numeric argument; None if values are encoded in the column's own type."""
    text = (field.metadata or {}).get(SENT)
    if text is None:
        return None
    name, _, number = text.decode().partition(":")
    return name, int(number or 0)


def with_rule(field: pa.Field, rule: str | None) -> pa.Field:
    metadata = {name: value for name, value in (field.metadata or {}).items() if name != SENT}
    return field.with_metadata(metadata if rule is None else {**metadata, SENT: rule.encode()})


def without_rules(schema: pa.Schema) -> pa.Schema:
    """The columns without encoding rules, as a source has them."""
    return _mapped(schema, lambda field: with_rule(field, None))


def as_sent(schema: pa.Schema) -> pa.Schema:
    """The columns in the types in which they are parsed; the schema itself if there are no rules."""
    return schema if not has_rules(schema) else _mapped(schema, _as_sent)


def has_rules(fields: pa.Schema | list[pa.Field]) -> bool:
    return any(rule_of(field) is not None or has_rules(_inside(field.type)) for field in fields)


def by_looks(schema: pa.Schema, time_unit: str, decimal_form: str) -> pa.Schema:
    """The columns of messages that state no types: the column's type decides how a value is read."""

    def ruled(field: pa.Field) -> pa.Field:
        kind = field.type
        if pa.types.is_date(kind):
            return with_rule(field, "any_date")
        if pa.types.is_timestamp(kind):
            return with_rule(field, f"any_timestamp_{time_unit}")
        if pa.types.is_time(kind):
            return with_rule(field, f"any_time_{time_unit}")
        if pa.types.is_decimal(kind):
            return with_rule(field, f"any_decimal_{decimal_form}")
        return with_rule(field, "number") if pa.types.is_floating(kind) else field

    return _mapped(schema, ruled)


def as_text(schema: pa.Schema, timestamp_unit: str | None) -> pa.Schema:
    """Dates and times encoded as text, as in JSON; the schema itself if it has none.

    `timestamp_unit` is the unit of numbers in TIMESTAMP columns; None: a number is not a timestamp.
    """

    def ruled(field: pa.Field) -> pa.Field:
        kind = field.type
        if rule_of(field) is not None:
            return field
        if pa.types.is_date(kind):
            return with_rule(field, "date")
        if pa.types.is_time(kind):
            return with_rule(field, "time")
        if pa.types.is_timestamp(kind):
            return with_rule(field, "timestamp" if timestamp_unit is None else f"timestamp_{timestamp_unit}")
        return field

    return _mapped(schema, ruled) if _has_temporal(schema) else schema


def _has_temporal(fields: pa.Schema | list[pa.Field]) -> bool:
    return any(pa.types.is_temporal(field.type) or _has_temporal(_inside(field.type)) for field in fields)


def fitted(sent: pa.Field, mine: pa.DataType) -> pa.Field:
    """A field as it is sent, with the type of its column if its values convert to it without loss.

    Related types are left alone: the column will be widened, or takes the values that fit.
    """
    if pa.types.is_integer(sent.type) and pa.types.is_decimal(mine):
        # By type alone the decimal would need room for every integer; what counts is the value that is sent.
        return with_rule(sent.with_type(mine), "number")
    if relation(column(pa.field("a", sent.type)), column(pa.field("a", mine))) is not TypeRelation.UNRELATED:
        return sent
    sent_rule = rule_of(sent)
    if sent_rule is not None and RULES[sent_rule[0]].fits(mine):
        return sent.with_type(mine)
    if sent_rule is not None and sent_rule[0] != "number":
        return sent
    rule = next((rule for ours, theirs, rule in FITTING if ours(sent.type) and theirs(mine)), None)
    return sent if rule is None else with_rule(sent.with_type(mine), rule)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def float_paths(schema: pa.Schema) -> frozenset[tuple[str, ...]]:
    """Float columns that are parsed as text. No digits are lost: a DOUBLE holds whatever the text converts to."""
    return frozenset(_float_paths(schema, ()))


def _float_paths(fields: Iterable[pa.Field], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for field in fields:
        path = (*above, field.name)
        if pa.types.is_floating(field.type) and (rule_of(field) or ("",))[0] == "number":
            yield path
        if pa.types.is_struct(field.type):
            yield from _float_paths(field.type, path)


# The first matching row: the type sent, the column's type, and the rule that converts one to the other.
FITTING: tuple[tuple[Test, Test, str], ...] = (
    (pa.types.is_string, _is_number, "number"),
    (_is_plain, pa.types.is_string, "text"),
)


def _as_sent(field: pa.Field) -> pa.Field:
    rule = rule_of(field)
    if rule is None:
        return field
    read_as = RULES[rule[0]].read_as
    # A default has the column's type, not that of what is parsed. Plain JSON has dates and times in the form of
    # defaults.
    lost = (SENT,) if rule[0] in PLAIN_RULES else (SENT, DEFAULT, INITIAL_DEFAULT)
    metadata = {name: value for name, value in (field.metadata or {}).items() if name not in lost}
    return field.with_type(read_as).with_metadata(metadata)


def _mapped(schema: pa.Schema, change: Callable[[pa.Field], pa.Field]) -> pa.Schema:
    return pa.schema([_changed(field, change) for field in schema], metadata=schema.metadata)


def _changed(field: pa.Field, change: Callable[[pa.Field], pa.Field]) -> pa.Field:
    changed = change(field)
    if changed.type != field.type:
        return changed
    kind = field.type
    if pa.types.is_struct(kind) and not is_variant(kind):
        return changed.with_type(pa.struct([_changed(inner, change) for inner in kind]))
    if pa.types.is_map(kind):
        key, item = inner_fields(kind)
        return changed.with_type(container(kind, [key, _changed(item, change)]))
    return changed.with_type(container(kind, [_changed(kind.value_field, change)])) if is_list(kind) else changed


def _inside(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [] if is_variant(kind) else list(kind)
    return inner_fields(kind) if pa.types.is_map(kind) or is_list(kind) else []
