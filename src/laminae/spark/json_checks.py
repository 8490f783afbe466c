"""The exact check of a suspect record: its document as a VARIANT, walked beside the values that were read.

It parses the text again several times and runs interpreted, inside a lambda: only suspects ever get here, and the code
that Spark generates for every other row stays small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.schema.column import dotted
from laminae.spark.project import first_in, first_of
from laminae.spark.reading import OPTIONS, declared
from laminae.spark.types import is_variant, spark_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from laminae.schema import column as schema_column
    from laminae.schema.column import Path
    from laminae.spark.record import RecordFields

REASONS = {
    "empty": "the message is empty",
    "encoding": "the message is not valid UTF-8",
    "malformed": "the message is not JSON",
    "quotes": "the message is not JSON: single quotes",
    "not an object": "the message is JSON but not an object",
    "trailing": "text follows the JSON document",
    "duplicate": "a key occurs twice in one object",
    "too long": "the message holds a text or number that is too long to read",
    "type": "{path} is not a value of type {type}",
    "digits": "{path} has more digits than {type} keeps",
    "version": "unknown schema version ",
}
REASON, UNKNOWN_FIELDS = "reason", "unknown"

# Longest text that Jackson reads (its StreamReadConstraints, which Spark leaves alone).
LONGEST_TEXT = 20_000_000
CORRUPT = "_corrupt_record"
EMPTY_VALUES = ("null", "{}", "[]")
ENTRIES, ITEMS = "MAP<STRING, VARIANT>", "ARRAY<VARIANT>"


def exact_check(fields: RecordFields, text: Column, parsed: Column, finds_unknown: bool) -> Column:
    """A struct of the reason why the record cannot be read (NULL: it can) and whether it has unknown fields."""

    def judged(record: Column) -> Column:
        said, read = record.getField("text"), record.getField("read")
        return let(F.try_parse_json(said), lambda document: outcome(said, read, document))

    def outcome(said: Column, read: Column, document: Column) -> Column:
        values = [(node, fields.value(node, said, read)) for node in fields.all]
        problem = let(_entries(document), lambda entries: first_of([_wrong(n, (), entries, v) for n, v in values]))
        unknown = _has_unknown(fields.all, document) if finds_unknown else F.lit(False)
        reason = F.coalesce(_broken(said, document), problem)
        return F.struct(reason.alias(REASON), F.coalesce(unknown, F.lit(False)).alias(UNKNOWN_FIELDS))

    return let(F.struct(text.alias("text"), parsed.alias("read")), judged)


def let(value: Column, body: Callable[[Column], Column]) -> Column:
    """`body` of a value that is computed once; the lambda also keeps it out of the generated code."""
    return F.get(F.transform(F.array(value), body), 0)


def _broken(text: Column, document: Column) -> Column:
    """Why the text is not one JSON object; NULL: it is."""
    is_one = (F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1) & (
        # Text that closes the bracket early gives the same length twice.
        F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]"))) == 2
    )
    lenient = {**OPTIONS, "allowSingleQuotes": "true"}
    return (
        F.when(F.coalesce(text, F.lit("")).rlike(r"\A\s*\z"), REASONS["empty"])
        .when(~F.is_valid_utf8(text), REASONS["encoding"])
        .when(~_is_object(text, OPTIONS) & document.isNotNull(), REASONS["not an object"])
        .when(~_is_object(text, OPTIONS) & _is_object(text, lenient), REASONS["quotes"])
        .when(~_is_object(text, OPTIONS), REASONS["malformed"])
        .when(~F.coalesce(is_one, F.lit(False)), REASONS["trailing"])
        .when(document.isNull() & (F.octet_length(text) > LONGEST_TEXT), REASONS["too long"])
        .when(document.isNull(), REASONS["duplicate"])
    )


def _is_object(text: Column, options: dict[str, str]) -> Column:
    parsed = F.from_json(text, f"{CORRUPT} STRING", {**options, "columnNameOfCorruptRecord": CORRUPT})
    return parsed.isNotNull() & parsed.getField(CORRUPT).isNull()


def _wrong(node: schema_column.Column, path: Path, entries: Column, read: Column) -> Column:
    """The first value under this field that is in the document and not in what was read."""
    here = (*path, node.name)
    return let(F.try_element_at(entries, F.lit(node.name)), lambda said: _wrong_value(node, here, said, read))


def _wrong_value(node: schema_column.Column, path: Path, said: Column, read: Column) -> Column:
    names = {"path": dotted(path), "type": spark_type(node.type).simpleString().upper()}
    lost = F.when(declared(node, read).isNull(), REASONS["type"].format(**names))
    inner: list[Column] = []
    kind = spark_type(node.type)
    if isinstance(kind, spark.DecimalType):
        inner = [F.when(_digits(said) != _digits(declared(node, read)), REASONS["digits"].format(**names))]
    elif isinstance(kind, spark.FloatType | spark.DoubleType):
        inner = [F.when(F.abs(read) == F.lit(float("inf")), REASONS["type"].format(**names))]
    elif node.children and not is_variant(node.type):
        inner = [_wrong_inside(node, path, said, read)]
    return F.when(said.isNotNull() & ~F.is_variant_null(said), first_of([*_unless_void(node, lost), *inner]))


def _unless_void(node: schema_column.Column, lost: Column) -> list[Column]:
    """A document's null inside a VARIANT is NULL; everything else that is said must have been read."""
    return [] if is_variant(node.type) else [lost]


def _wrong_inside(node: schema_column.Column, path: Path, said: Column, read: Column) -> Column:
    if node.kind == "struct":
        return let(
            _entries(said),
            lambda entries: first_of([_wrong(c, path, entries, read.getField(c.name)) for c in node.children]),
        )
    child = node.children[-1]
    here = (*path, child.name)
    if node.kind == "map":
        return let(
            _entries(said),
            lambda entries: first_in(
                F.map_keys(entries),
                lambda k: _wrong_value(child, here, F.try_element_at(entries, k), F.try_element_at(read, k)),
            ),
        )
    pairs = F.arrays_zip(F.try_variant_get(said, "$", ITEMS).alias("said"), read.alias("read"))
    return first_in(pairs, lambda pair: _wrong_value(child, here, pair.getField("said"), pair.getField("read")))


def _has_unknown(nodes: Sequence[schema_column.Column], said: Column) -> Column:
    """Whether an object here or below has a key that no field has, with a value that says something."""
    known = [node.name for node in nodes]

    def is_news(entry: Column) -> Column:
        return ~entry.getField("key").isin(known) & ~F.to_json(entry.getField("value")).isin(*EMPTY_VALUES)

    def found(entries: Column) -> Column:
        result = F.exists(F.map_entries(entries), is_news)
        for node in nodes:
            if _has_fields(node):
                result |= F.coalesce(_unknown_in(node, F.try_element_at(entries, F.lit(node.name))), F.lit(False))
        return result

    return let(_entries(said), found)


def _unknown_in(node: schema_column.Column, said: Column) -> Column:
    if node.kind == "struct":
        return _has_unknown(node.children, said)
    items = F.map_values(_entries(said)) if node.kind == "map" else F.try_variant_get(said, "$", ITEMS)
    return F.exists(items, lambda item: F.coalesce(_unknown_in(node.children[-1], item), F.lit(False)))


def _has_fields(node: schema_column.Column) -> bool:
    if is_variant(node.type):
        return False
    return node.kind == "struct" or any(_has_fields(child) for child in node.children)


def _entries(said: Column) -> Column:
    return F.try_variant_get(said, "$", ENTRIES)


def _digits(number: Column) -> Column:
    """A number's plain text without the zeros at its end."""
    return F.regexp_replace(number.cast("string"), r"(\.[0-9]*?)0+$", "$1").cast("string")
