"""How values are written in Debezium's events where that is not the form of their column. No Spark here.

The rule of a value stands in the metadata of its field, at any depth: it goes wherever a schema goes, and what compares
schemas does not see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import DEFAULT, column
from laminae.schema.nesting import container, inner_fields, is_list
from laminae.schema.types import VARIANT, is_variant
from laminae.schema.widening import TypeRelation, relation

if TYPE_CHECKING:
    from collections.abc import Callable

    Test = Callable[[pa.DataType], bool]

SENT = b"laminae:sent"
UNAVAILABLE = "__debezium_unavailable_value"
"""What an event has in the place of a value that is stored apart and did not change."""
# The unscaled number as its bytes, the largest first, with the scale that a column of one scale does not need.
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
    """What a JSON reader is asked for, and the types of columns that such a value can become."""

    read_as: pa.DataType
    fits: Test


RULES: dict[str, SentRule] = {
    # Where the message tells the type of a value.
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
    # Where only the type of the column does, and the look of a value.
    "any_date": SentRule(pa.string(), pa.types.is_date),
    "any_timestamp_millis": SentRule(pa.string(), pa.types.is_timestamp),
    "any_timestamp_micros": SentRule(pa.string(), pa.types.is_timestamp),
    "any_timestamp_nanos": SentRule(pa.string(), pa.types.is_timestamp),
    "any_time_millis": SentRule(pa.string(), pa.types.is_time),
    "any_time_micros": SentRule(pa.string(), pa.types.is_time),
    "any_time_nanos": SentRule(pa.string(), pa.types.is_time),
    "any_decimal_base64": SentRule(VARIANT, pa.types.is_decimal),
    "any_decimal_text": SentRule(VARIANT, pa.types.is_decimal),
}
"""By name; a scale may follow after a colon."""


def rule_of(field: pa.Field) -> tuple[str, int] | None:
    """The name of a field's rule and the number behind it; None: its values are written in their own form."""
    text = (field.metadata or {}).get(SENT)
    if text is None:
        return None
    name, _, number = text.decode().partition(":")
    return name, int(number or 0)


def with_rule(field: pa.Field, rule: str | None) -> pa.Field:
    kept = {name: value for name, value in (field.metadata or {}).items() if name != SENT}
    return field.with_metadata(kept if rule is None else {**kept, SENT: rule.encode()})


def without_rules(schema: pa.Schema) -> pa.Schema:
    """The columns as a source has them."""
    return _mapped(schema, lambda field: with_rule(field, None))


def as_sent(schema: pa.Schema) -> pa.Schema:
    """The columns in the types in which they are read; the schema itself where all are their own."""
    return schema if not has_rules(schema) else _mapped(schema, _as_sent)


def has_rules(fields: pa.Schema | list[pa.Field]) -> bool:
    return any(rule_of(field) is not None or has_rules(_inside(field.type)) for field in fields)


def by_looks(schema: pa.Schema, time_unit: str, decimal_form: str) -> pa.Schema:
    """The columns of messages that tell no types: a value is what its column makes of it."""

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


def fitted(sent: pa.Field, mine: pa.DataType) -> pa.Field:
    """A field as it is sent, in the type of the column it is where its values can become such without a loss.

    Types that are related stay: the column is to become wider, or takes values that fit.
    """
    if pa.types.is_integer(sent.type) and pa.types.is_decimal(mine):
        # As types they ask for room for every integer; what counts here is the one that is sent.
        return with_rule(sent.with_type(mine), "number")
    if relation(column(pa.field("a", sent.type)), column(pa.field("a", mine))) is not TypeRelation.UNRELATED:
        return sent
    found = rule_of(sent)
    if found is not None and RULES[found[0]].fits(mine):
        return sent.with_type(mine)
    if found is not None and found[0] != "number":
        return sent
    rule = next((rule for ours, theirs, rule in FITTING if ours(sent.type) and theirs(mine)), None)
    return sent if rule is None else with_rule(sent.with_type(mine), rule)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


# The first row that fits: what is sent, the column, and the rule that makes the one the other.
FITTING: tuple[tuple[Test, Test, str], ...] = (
    (pa.types.is_string, _is_number, "number"),
    (_is_plain, pa.types.is_string, "text"),
)


def _as_sent(field: pa.Field) -> pa.Field:
    rule = rule_of(field)
    if rule is None:
        return field
    # A default has the column's type, and not that of what is read.
    kept = {name: value for name, value in (field.metadata or {}).items() if name not in (SENT, DEFAULT)}
    return field.with_type(RULES[rule[0]].read_as).with_metadata(kept)


def _mapped(schema: pa.Schema, change: Callable[[pa.Field], pa.Field]) -> pa.Schema:
    return pa.schema([_changed(field, change) for field in schema], metadata=schema.metadata)


def _changed(field: pa.Field, change: Callable[[pa.Field], pa.Field]) -> pa.Field:
    made = change(field)
    if made.type != field.type:
        return made
    kind = field.type
    if pa.types.is_struct(kind) and not is_variant(kind):
        return made.with_type(pa.struct([_changed(inner, change) for inner in kind]))
    if pa.types.is_map(kind):
        key, item = inner_fields(kind)
        return made.with_type(container(kind, [key, _changed(item, change)]))
    return made.with_type(container(kind, [_changed(kind.value_field, change)])) if is_list(kind) else made


def _inside(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [] if is_variant(kind) else list(kind)
    return inner_fields(kind) if pa.types.is_map(kind) or is_list(kind) else []
