"""A cheap test on every record that tells the plainly good ones from those that need the exact check.

It counts: a document has as many keys as values were read from it, and as many closing braces as objects. Whatever it
cannot account for (a failed conversion, a key read by nobody, a second document) makes the record a suspect; a good
record may be one too, a bad one never is not. It calls no parser.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.spark.reading import declared, fraction_digits, is_read_as_declared
from laminae.spark.record import may_be_absent
from laminae.spark.types import is_variant, spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column

    from laminae.schema import column as schema_column
    from laminae.spark.java_text import JavaText
    from laminae.spark.record import RecordFields

# `":` ends a key unless white space stands between; JSON has four kinds of it.
KEY_END = '":'
SPACED_KEY_ENDS = (" :", "\t:", "\n:", "\r:")
# What decoding puts in the place of bytes that are not UTF-8.
REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class Accounts:
    """What was read from a record: keys that have a value, objects, keys whose value is null.

    `is_odd` says that some value needs a closer look.
    """

    keys: Column
    objects: Column
    nulls: Column
    is_odd: Column


def accounts(fields: RecordFields, text: Column, parsed: Column) -> Accounts:
    values = [(node, fields.value(node, text, parsed)) for node in fields.all]
    odd = [test for node, value in values if (test := _is_odd(node, value)) is not None]
    odd += _decimal_tests(fields.all, text)
    flat_text = None if any(_has_objects(node) for node in fields.all) else text
    return Accounts(
        keys=reduce(add, [_keys_at(node, value, flat_text) for node, value in values], F.lit(0)),
        objects=reduce(add, [_objects(node, value) for node, value in values if _has_objects(node)], F.lit(1)),
        nulls=_nulls(fields.all, values, text),
        is_odd=F.coalesce(reduce(or_, odd), F.lit(False)) if odd else F.lit(False),
    )


def is_clean(java: JavaText, text: Column, found: Accounts) -> Column:
    """Whether everything in the text is accounted for. Of a record that was not parsed no key was read."""
    said = java.count(text, KEY_END)
    return (
        (found.keys > 0)
        & ((said <= found.keys) | (said <= found.keys + found.nulls))
        & (java.count(text, "}") <= found.objects)
        & (text.endswith("}") | F.rtrim(text, F.lit(" \t\r\n")).endswith("}"))
        & ~java.holds(text, REPLACEMENT)
        & ~reduce(or_, [java.holds(text, end) for end in SPACED_KEY_ENDS])
        & ~found.is_odd
    )


def _keys_at(node: schema_column.Column, value: Column, flat_text: Column | None) -> Column:
    """Keys read for this field: its own and those inside. A default that was filled in has none in the text."""
    present = F.lit(1) + _keys_in(node, value) if _has_objects(node) else F.lit(1)
    if node.default is None:
        return F.when(value.isNotNull(), present).otherwise(0)
    unsure = F.lit(0)
    if flat_text is not None:
        # In a flat record no other column can have this key; among nested ones the exact check must look.
        unsure = F.when(value.isNotNull() & flat_text.contains(_key(node)), 1).otherwise(0)
    return F.when(may_be_absent(node, value), unsure).otherwise(present)


def _keys_in(node: schema_column.Column, value: Column) -> Column:
    if is_variant(node.type) or not _has_objects(node):
        return F.lit(0)
    if node.kind == "struct":
        return reduce(add, [_keys_at(c, value.getField(c.name), None) for c in node.children], F.lit(0))
    items, child = (F.map_values(value), node.children[1]) if node.kind == "map" else (value, node.children[0])
    own = 1 if node.kind == "map" else 0
    return F.aggregate(
        items,
        F.lit(0),
        lambda so_far, item: so_far + F.when(item.isNotNull(), _keys_in(child, item) + own).otherwise(0),
    )


def _objects(node: schema_column.Column, value: Column) -> Column:
    if is_variant(node.type) or not _has_objects(node):
        return F.lit(0)
    if node.kind == "struct":
        inner = reduce(add, [_objects(c, value.getField(c.name)) for c in node.children], F.lit(1))
        return F.when(value.isNotNull(), inner).otherwise(0)
    items, child = (F.map_values(value), node.children[1]) if node.kind == "map" else (value, node.children[0])
    own = 1 if node.kind == "map" else 0
    counted = F.aggregate(items, F.lit(own), lambda so_far, item: so_far + _objects(child, item))
    return F.when(value.isNotNull(), counted).otherwise(0)


def _nulls(
    nodes: Sequence[schema_column.Column], values: Sequence[tuple[schema_column.Column, Column]], text: Column
) -> Column:
    """Keys whose value is an explicit null, found by name: only if each name stands for one field of the schema."""
    names = [node.name for top in nodes for node in _named(top)]
    if len(set(names)) < len(names):
        return F.lit(0)
    return reduce(add, [_null_keys(node, value, text) for node, value in values], F.lit(0))


def _null_keys(node: schema_column.Column, value: Column, text: Column) -> Column:
    said = text.contains(_key(node) + "null") | text.contains(_key(node) + " null")
    own = F.when(value.isNull() & said, 1).otherwise(0)
    if node.kind != "struct" or is_variant(node.type):
        return own
    return reduce(add, [_null_keys(c, value.getField(c.name), text) for c in node.children], own)


def _is_odd(node: schema_column.Column, value: Column) -> Column | None:
    """Whether a value may not be what the document says although it was read; None: it always is."""
    if is_variant(node.type):
        return None
    if node.kind == "struct":
        tests = [t for c in node.children if (t := _is_odd(c, value.getField(c.name))) is not None]
        return reduce(or_, tests) if tests else None
    if node.kind == "map":
        repeated = F.size(F.array_distinct(F.map_keys(value))) < F.size(value)
        inner = _any_odd(node.children[1], F.map_values(value))
        is_lost = value.isNotNull() & declared(node, value).isNull()
        tests = [repeated, *([] if is_read_as_declared(node) else [is_lost]), *([] if inner is None else [inner])]
        return reduce(or_, tests)
    if node.children:
        return _any_odd(node.children[0], value)
    kind = spark_type(node.type)
    if isinstance(kind, spark.FloatType | spark.DoubleType):
        return F.abs(value) == F.lit(float("inf")).cast(kind)
    if isinstance(kind, spark.DecimalType | spark.ByteType):
        return value.isNotNull() & ~value.eqNullSafe(declared(node, value))
    return None


def _any_odd(element: schema_column.Column, items: Column) -> Column | None:
    if _is_odd(element, F.lit(None)) is None:
        return None

    def is_odd(item: Column) -> Column:
        test = _is_odd(element, item)
        return F.lit(False) if test is None else F.coalesce(test, F.lit(False))

    return F.exists(items, is_odd)


def _decimal_tests(nodes: Sequence[schema_column.Column], text: Column) -> list[Column]:
    """A number with more digits than are read for a DECIMAL was rounded before anybody could compare it."""
    kinds = [spark_type(leaf.type) for node in nodes for leaf in _leaves(node)]
    kept = [fraction_digits(kind) for kind in kinds if isinstance(kind, spark.DecimalType)]
    return [text.rlike(rf"\.[0-9]{{{min(kept) + 1}}}|[0-9][eE]-")] if kept else []


def _has_objects(node: schema_column.Column) -> bool:
    """Whether keys can lie inside; those of a VARIANT are unknown and make the record a suspect."""
    return node.kind in ("struct", "map") or any(_has_objects(child) for child in node.children)


def _named(node: schema_column.Column) -> Iterator[schema_column.Column]:
    yield node
    for child in node.children:
        yield from (n for n in _named(child) if n is not child or node.kind == "struct")


def _leaves(node: schema_column.Column) -> Iterator[schema_column.Column]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _key(node: schema_column.Column) -> str:
    return json.dumps(node.name, ensure_ascii=False) + ":"
