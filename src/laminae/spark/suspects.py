"""A cheap test on every record that tells the plainly good ones from those that need the exact check.

It counts: a document has as many keys as values were read from it, and as many closing braces as objects. Whatever it
cannot account for (a failed conversion, a key read by nobody, a second document) makes the record a suspect; a good
record may be one too, a bad one never is not. It calls no parser.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.schema.types import is_variant
from laminae.spark.expression import (
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
from laminae.spark.java_text import JavaText
from laminae.spark.reading import declared, fraction_digits, is_read_as_declared
from laminae.spark.record import may_be_absent
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext
    from pyspark.sql import Column

    from laminae.schema.column import Column as Field
    from laminae.spark.record import RecordFields


# `":` ends a key unless white space stands between; JSON has four kinds of it.
KEY_END = '":'
SPACED_KEY_ENDS = (" :", "\t:", "\n:", "\r:")
# What decoding puts in the place of bytes that are not UTF-8.
REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the text holds: ends of keys, closing braces, and whether it has something that spoils the count."""

    keys: Expression
    braces: Expression
    is_strange: Expression


@dataclass(frozen=True, slots=True)
class Accounts:
    """What was read from a record: keys that have a value, objects, keys whose value is null.

    `is_odd` says that some value needs a closer look.
    """

    keys: Expression
    objects: Expression
    nulls: Expression
    is_odd: Expression


# The keys of `Accounts`, as a column of their own: three tests look at them, and the plan would hold them three times.
FOUND = Expression("_found")
SEEN = Seen(keys=Expression("_keys"), braces=Expression("_braces"), is_strange=Expression("_is_strange"))


@lru_cache(maxsize=1)
def seen_columns(context: SparkContext) -> dict[str, Column]:
    """The columns that `SEEN` refers to, over a column `value`. Kept: to build them costs 75 ms an epoch."""
    java, text = JavaText(context), F.col("value").cast("string")
    strange = [java.holds(text, part) for part in (REPLACEMENT, *SPACED_KEY_ENDS)]
    return {
        SEEN.keys.sql: java.count(text, KEY_END),
        SEEN.braces.sql: java.count(text, "}"),
        SEEN.is_strange.sql: reduce(or_, strange),
    }


def accounts(fields: RecordFields, text: Expression, parsed: Expression) -> Accounts:
    values = [(node, fields.value(node, text, parsed)) for node in fields.all]
    odd = [test for node, value in values if (test := _is_odd(node, value)) is not None]
    flat_text = None if any(_has_objects(node) for node in fields.all) else text
    return Accounts(
        keys=total([_keys_at(node, value, flat_text) for node, value in values]),
        objects=total([ONE, *(_objects(node, value) for node, value in values if _has_objects(node))]),
        nulls=_nulls(values, text),
        is_odd=any_of([*odd, *_decimal_tests(fields.all, text)]),
    )


def is_clean(text: Expression, seen: Seen, found: Accounts) -> Expression:
    """Whether everything in the text is accounted for. Of a record that was not parsed no key was read."""
    ends = [call("endswith", each_, literal("}")) for each_ in (text, call("rtrim", literal(" \t\r\n"), text))]
    return (
        FOUND.compared(">", 0)
        & (seen.keys.compared("<=", FOUND) | seen.keys.compared("<=", FOUND + found.nulls))
        & seen.braces.compared("<=", found.objects)
        & ~(seen.is_strange | found.is_odd)
        & any_of(ends)
    )


def _keys_at(node: Field, value: Expression, flat_text: Expression | None) -> Expression:
    """Keys read for this field: its own and those inside. A default that was filled in has none in the text."""
    present = total([ONE, _keys_in(node, value)]) if _has_objects(node) else ONE
    if node.default is None:
        return when(value.is_there(), present, ZERO)
    unsure = ZERO
    if flat_text is not None:
        # In a flat record no other column can have this key; among nested ones the exact check must look.
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
    """Objects read for this field, each of which closes a brace."""
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


def _nulls(values: Sequence[tuple[Field, Expression]], text: Expression) -> Expression:
    """Keys whose value is an explicit null, found by name: only if each name stands for one field of the schema."""
    names = [node.name for top, _ in values for node in _named(top)]
    if len(set(names)) < len(names):
        return ZERO
    return total([part for node, value in values for part in _null_keys(node, value, text)])


def _null_keys(node: Field, value: Expression, text: Expression) -> Iterator[Expression]:
    said = reduce(or_, (call("contains", text, literal(_key(node) + null)) for null in ("null", " null")))
    yield when(value.is_null() & said, ONE, ZERO)
    if node.kind == "struct" and not is_variant(node.type):
        for child in node.children:
            yield from _null_keys(child, value.field(child.name), text)


def _is_odd(node: Field, value: Expression) -> Expression | None:
    """Whether a value may not be what the document says although it was read; None: it always is."""
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
    if isinstance(kind, spark.DecimalType | spark.ByteType):
        return value.is_there() & ~value.compared("<=>", declared(node, value))
    return None


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
    """A number with more digits than are read for a DECIMAL was rounded before anybody could compare it."""
    kinds = [spark_type(leaf.type) for node in nodes for leaf in _leaves(node)]
    kept = [fraction_digits(kind) for kind in kinds if isinstance(kind, spark.DecimalType)]
    return [call("rlike", text, literal(rf"\.[0-9]{{{min(kept) + 1}}}|[0-9][eE]-"))] if kept else []


def _has_objects(node: Field) -> bool:
    """Whether keys can lie inside; those of a VARIANT are unknown and make the record a suspect."""
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
