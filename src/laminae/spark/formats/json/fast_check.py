"""A cheap test of every JSON record that decides whether it needs the exact check.

It compares counts: a document has as many keys as values were read from it, and as many closing braces as objects.
Anything unaccounted for (a failed conversion, a key that was not read, a second document) makes the record a suspect.
False positives are possible, false negatives are not. This module must not call a parser.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.schema.types import is_variant
from laminae.spark.catalyst.column_functions import JavaText
from laminae.spark.catalyst.expression import (
    FALSE,
    NULL_TEXT,
    ONE,
    ZERO,
    Expression,
    any_of,
    call,
    each,
    each_two,
    literal,
    total,
    when,
)
from laminae.spark.catalyst.plans.plan_cache import plan_cache
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats.json.from_json import declared, fraction_digits, is_read_as_declared
from laminae.spark.formats.json.record import may_be_absent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext
    from pyspark.sql import Column

    from laminae.schema.column import Column as Field
    from laminae.spark.formats.json.record import RecordFields


# `":` ends a key, unless white space separates the two characters. JSON has four white space characters.
KEY_END = '":'
SPACED_KEY_ENDS = (" :", "\t:", "\n:", "\r:")
# The character that decoding substitutes for bytes that are not valid UTF-8.
REPLACEMENT = "\ufffd"
# The prefix of an escaped surrogate. A pair is one character; the JVM writes an unpaired one as a question mark.
SURROGATES = (r"\ud", r"\uD")
# An unpaired surrogate, or one after a backslash that may itself be escaped.
ODD_SURROGATE = (
    r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]|\\\\u[dD][89a-fA-F]"
)
# `from_json` converts a number to text through a DOUBLE, which keeps at most this many digits.
EXACT_LENGTH = 16
DOUBLE_TEXT = r"^-?[0-9]+\.[0-9]+(E-?[0-9]+)?$"
# The same inside an object or a list, which `from_json` also returns as text.
NESTED_DOUBLE = r"(?s)^[\[{](.*[\[:,])?-?((?=[0-9.E-]{17})[0-9]+\.[0-9]|\"-?Infinity\")"
# The text of numbers that are too large for a DOUBLE, and of those that are too small.
OUTSIDE_DOUBLE = ('"Infinity"', '"-Infinity"', "0.0", "-0.0")


@dataclass(frozen=True, slots=True)
class Seen:
    """Counts in the text: ends of keys, closing braces, and whether it contains anything that invalidates them."""

    keys: Expression
    braces: Expression
    is_strange: Expression


@dataclass(frozen=True, slots=True)
class Accounts:
    """Counts of what was read from a record: keys that have a value, objects, keys whose value is null.

    `is_odd`: some value needs the exact check.
    """

    keys: Expression
    objects: Expression
    nulls: Expression
    is_odd: Expression


# `Accounts.keys` as a separate column: three tests use it, and the plan would otherwise contain it three times.
FOUND = Expression("_found")
SEEN = Seen(keys=Expression("_keys"), braces=Expression("_braces"), is_strange=Expression("_is_strange"))


def seen_columns(context: SparkContext) -> dict[str, Column]:
    """The columns that `SEEN` refers to, over a column `value`. Cached: building them costs 75 ms per epoch."""
    return plan_cache().get(seen_columns, SEEN, lambda: _seen_columns(context))


def _seen_columns(context: SparkContext) -> dict[str, Column]:
    java, text = JavaText(context), F.col("value").cast("string")
    strange = [java.holds(text, part) for part in (REPLACEMENT, *SPACED_KEY_ENDS)]
    has_surrogates = reduce(or_, (java.holds(text, part) for part in SURROGATES))
    strange.append(has_surrogates & text.rlike(ODD_SURROGATE))
    return {
        SEEN.keys.sql: java.count(text, KEY_END),
        SEEN.braces.sql: java.count(text, "}"),
        SEEN.is_strange.sql: reduce(or_, strange),
    }


@dataclass(frozen=True, slots=True)
class ReadKey:
    """A field of a record and the value that was read for it.

    `is_meant` is true where the version of the record has the field; None if every version has it.
    """

    node: Field
    value: Expression
    is_meant: Expression | None = None

    def counted(self, number: Expression) -> Expression:
        """`number`, or 0 where the version of the record lacks the field: such a key counts as not read."""
        return number if self.is_meant is None else when(self.is_meant, number, ZERO)


def accounts(fields: RecordFields, text: Expression, parsed: Expression) -> Accounts:
    return accounts_of([ReadKey(node, fields.value(node, text, parsed)) for node in fields.all], text)


def accounts_of(keys: Sequence[ReadKey], text: Expression) -> Accounts:
    nodes = [key.node for key in keys]
    odd = [test for key in keys if (test := _is_odd(key.node, key.value)) is not None]
    flat_text = None if any(map(_has_objects, nodes)) else text
    objects = [key.counted(_objects(key.node, key.value)) for key in keys if _has_objects(key.node)]
    return Accounts(
        keys=total([key.counted(_keys_at(key.node, key.value, flat_text)) for key in keys]),
        objects=total([ONE, *objects]),
        nulls=_nulls(keys, text),
        is_odd=any_of([*odd, *_decimal_tests(nodes, text)]),
    )


def is_clean(text: Expression, seen: Seen, found: Accounts) -> Expression:
    """Whether everything in the text is accounted for. If a record could not be parsed, no key of it was read."""
    ends = [call("endswith", each_, literal("}")) for each_ in (text, call("rtrim", literal(" \t\r\n"), text))]
    return (
        FOUND.compared(">", 0)
        & (seen.keys.compared("<=", FOUND) | seen.keys.compared("<=", FOUND + found.nulls))
        & seen.braces.compared("<=", found.objects)
        & ~(seen.is_strange | found.is_odd)
        & any_of(ends)
    )


def _keys_at(node: Field, value: Expression, flat_text: Expression | None) -> Expression:
    """The number of keys read for this field and the fields inside it. A filled-in default has no key in the text."""
    present = total([ONE, _keys_in(node, value)]) if _has_objects(node) else ONE
    if node.default is None:
        return when(value.is_there(), present, ZERO)
    unsure = ZERO
    if flat_text is not None:
        # In a flat record no other column can have this key; a nested record is left to the exact check.
        unsure = when(value.is_there() & call("contains", flat_text, literal(_key(node))), ONE, ZERO)
    return when(may_be_absent(node, value), unsure, present)


def _keys_in(node: Field, value: Expression) -> Expression:
    if is_variant(node.type) or not _has_objects(node):
        return ZERO
    if node.kind == "struct":
        return total([_keys_at(child, value.field(child.name), None) for child in node.children])
    own = ONE if node.kind == "map" else ZERO
    return each_two(
        "aggregate",
        [_items(node, value), ZERO],
        lambda so_far, item: so_far + when(item.is_there(), _keys_in(node.children[-1], item) + own, ZERO),
    )


def _objects(node: Field, value: Expression) -> Expression:
    """The number of objects read for this field; each has one closing brace."""
    if is_variant(node.type) or not _has_objects(node):
        return ZERO
    if node.kind == "struct":
        inner = total([ONE, *(_objects(c, value.field(c.name)) for c in node.children if _has_objects(c))])
        return when(value.is_there(), inner, ZERO)
    own = ONE if node.kind == "map" else ZERO
    counted = each_two(
        "aggregate", [_items(node, value), own], lambda so_far, item: so_far + _objects(node.children[-1], item)
    )
    return when(value.is_there(), counted, ZERO)


def _items(node: Field, value: Expression) -> Expression:
    return call("map_values", value) if node.kind == "map" else value


def _nulls(keys: Sequence[ReadKey], text: Expression) -> Expression:
    """The number of keys with an explicit null, found by name; 0 unless each name belongs to one field of the schema.

    Versions may read a top-level field in several ways, but each record is read in only one of them.
    """
    by_top: dict[str, set[str]] = {}
    for key in keys:
        names = [node.name for node in _named(key.node)]
        if len(set(names)) < len(names):
            return ZERO
        by_top.setdefault(key.node.name, set()).update(names)
    if sum(map(len, by_top.values())) > len(set().union(*by_top.values())):
        return ZERO
    return total([key.counted(part) for key in keys for part in _null_keys(key.node, key.value, text)])


def _null_keys(node: Field, value: Expression, text: Expression) -> Iterator[Expression]:
    said = reduce(or_, (call("contains", text, literal(_key(node) + null)) for null in ("null", " null")))
    yield when(value.is_null() & said, ONE, ZERO)
    if node.kind == "struct" and not is_variant(node.type):
        for child in node.children:
            yield from _null_keys(child, value.field(child.name), text)


def _is_odd(node: Field, value: Expression) -> Expression | None:
    """Whether a value that was read may differ from the document; None if it never does."""
    if is_variant(node.type):
        return None
    if node.kind == "struct":
        tests = [test for c in node.children if (test := _is_odd(c, value.field(c.name))) is not None]
        return any_of(tests) if tests else None
    if node.kind == "map":
        return _is_odd_map(node, value)
    if node.children:
        return _has_odd(node.children[0], value)
    kind = spark_type(node.type)
    if isinstance(kind, spark.FloatType | spark.DoubleType):
        return call("abs", value).compared("=", Expression("DOUBLE('Infinity')"))
    if isinstance(kind, spark.StringType):
        return may_be_rounded(value)
    if isinstance(kind, spark.DecimalType | spark.ByteType):
        return value.is_there() & ~value.compared("<=>", declared(node, value))
    return None


def may_be_rounded(text: Expression) -> Expression:
    """Whether a text may be a number of the document that lost digits; few texts look like one."""
    is_long = call("length", text).compared(">", EXACT_LENGTH) & text.compared("<", literal(":"))
    is_nested = (call("startswith", text, literal("[")) | call("startswith", text, literal("{"))) & call(
        "rlike", text, literal(NESTED_DOUBLE)
    )
    return is_long & call("rlike", text, literal(DOUBLE_TEXT)) | is_nested | text.is_one_of(OUTSIDE_DOUBLE)


def _is_odd_map(node: Field, value: Expression) -> Expression:
    # `from_json` keeps both entries of a repeated key.
    tests = [call("size", call("array_distinct", call("map_keys", value))).compared("<", call("size", value))]
    if not is_read_as_declared(node):
        tests.append(value.is_there() & declared(node, value).is_null())
    inner = _has_odd(node.children[1], call("map_values", value))
    return any_of(tests if inner is None else [*tests, inner])


def _has_odd(element: Field, items: Expression) -> Expression | None:
    if _is_odd(element, NULL_TEXT) is None:
        return None
    return each("exists", items, lambda item: any_of([_is_odd(element, item) or FALSE]))


def _decimal_tests(nodes: Sequence[Field], text: Expression) -> list[Expression]:
    """Tests for numbers with more digits than are read for a DECIMAL: these are rounded before any comparison."""
    kinds = [spark_type(leaf.type) for node in nodes for leaf in _leaves(node)]
    digits = [fraction_digits(kind) for kind in kinds if isinstance(kind, spark.DecimalType)]
    return [call("rlike", text, literal(rf"\.[0-9]{{{min(digits) + 1}}}|[0-9][eE]-"))] if digits else []


def _has_objects(node: Field) -> bool:
    """Whether the value can contain keys. Those of a VARIANT are unknown and make the record a suspect."""
    return node.kind in ("struct", "map") or any(_has_objects(child) for child in node.children)


def _named(node: Field) -> Iterator[Field]:
    yield node
    for child in node.children:
        yield from (inner for inner in _named(child) if inner is not child or node.kind == "struct")


def _leaves(node: Field) -> Iterator[Field]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _key(node: Field) -> str:
    return json.dumps(node.name, ensure_ascii=False) + ":"
