"""The exact check of a suspect record: its document and what was read of it, side by side, value by value.

Both are turned into VARIANTs and flattened level by level, so the expression is as small for any schema. It
parses the text several times and runs interpreted, inside lambdas: only suspects ever get here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.schema.column import dotted
from laminae.schema.types import is_variant
from laminae.spark.expression import (
    FALSE,
    NULL_TEXT,
    ONE,
    Expression,
    any_of,
    call,
    cases,
    each,
    each_two,
    first_text,
    let,
    literal,
    options_map,
    struct,
)
from laminae.spark.project import first_in
from laminae.spark.reading import OPTIONS
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from laminae.schema.column import Column, Path

REASONS = {
    "empty": "the message is empty",
    "encoding": "the message is not valid UTF-8",
    "malformed": "the message is not JSON",
    "quotes": "the message is not JSON: single quotes",
    "not an object": "the message is JSON but not an object",
    "trailing": "text follows the JSON document",
    "duplicate": "a key occurs twice in one object",
    "too long": "the message holds a text or number that is too long to read",
    "type": " is not a value of type ",
    "digits": " has more digits than this type keeps: ",
    "unknown": "the message has a field that the source does not take",
    "version": "unknown schema version ",
    "suspect": "the message needs a closer look",
}
REASON, UNKNOWN_FIELDS = "reason", "unknown"

# Longest text that Jackson reads (its StreamReadConstraints, which Spark leaves alone).
LONGEST_TEXT = 20_000_000
CORRUPT = "_corrupt_record"
EMPTY_VALUES = ("null", "{}", "[]")
INFINITIES = ("Infinity", "-Infinity")
ROOT, ENTRIES, ITEMS = literal("$"), literal("MAP<STRING, VARIANT>"), literal("ARRAY<VARIANT>")
# The fields of a node: where it stands, what the document says there, and what was read.
PATH, SAID, READ = "path", "said", "read"
NODES = f"ARRAY<STRUCT<{PATH}: STRING, {SAID}: VARIANT, {READ}: VARIANT>>"
ALL, LEVEL = "all", "level"
# Between the names of a path, where a dot may be part of a name.
SEPARATOR = "\x1f"


def exact_check(text: Expression, echo: Expression, types: Expression, depth: int, finds_unknown: bool) -> Expression:
    """A struct of the reason why the record cannot be read (NULL: it can) and whether it has unknown fields.

    `echo` is what was read, as JSON again; `types` and `depth` are those of the fields that could be read.
    """

    def judged(record: Expression) -> Expression:
        document, types = record.field("document"), record.field("types")
        nodes = _nodes(document, record.field("echo"), types, depth)
        return let(nodes, lambda found: outcome(record.field("text"), document, found, types))

    def outcome(said: Expression, document: Expression, nodes: Expression, types: Expression) -> Expression:
        reason = first_text([_broken(said, document), first_in(nodes, lambda node: _problem(node, types))])
        news = any_of([each("exists", nodes, lambda node: _is_news(node, types))]) if finds_unknown else FALSE
        return struct([(REASON, reason), (UNKNOWN_FIELDS, news)])

    record = struct(
        [
            ("text", text),
            ("document", call("try_parse_json", text)),
            ("echo", call("try_parse_json", echo)),
            ("types", types),
        ]
    )
    return let(record, judged)


def _broken(text: Expression, document: Expression) -> Expression:
    """Why the text is not one JSON object; NULL: it is."""
    is_one = is_one_document(text)
    is_object = _is_object(text, OPTIONS)
    is_quoted_singly = _is_object(text, {**OPTIONS, "allowSingleQuotes": "true"})
    is_long = call("octet_length", text).compared(">", LONGEST_TEXT)
    branches = [
        (call("rlike", call("coalesce", text, literal("")), literal(r"\A\s*\z")), "empty"),
        (~call("is_valid_utf8", text), "encoding"),
        (~is_object & document.is_there(), "not an object"),
        (~is_object & is_quoted_singly, "quotes"),
        (~is_object, "malformed"),
        (~is_one, "trailing"),
        (document.is_null() & is_long, "too long"),
        (document.is_null(), "duplicate"),
    ]
    return cases([(test, literal(REASONS[name])) for test, name in branches])


def is_one_document(text: Expression) -> Expression:
    """Whether nothing follows the document, which a parser leaves alone."""
    length = {end: call("json_array_length", call("concat", literal("["), text, literal(end))) for end in ("]", ",0]")}
    # Text that closes the bracket early gives the same length twice.
    return any_of([length["]"].compared("=", 1) & length[",0]"].compared("=", 2)])


def _is_object(text: Expression, options: Mapping[str, str]) -> Expression:
    given = {**options, "columnNameOfCorruptRecord": CORRUPT}
    parsed = call("from_json", text, literal(f"{CORRUPT} STRING"), options_map(given))
    return any_of([parsed.is_there() & parsed.field(CORRUPT).is_null()])


def _nodes(document: Expression, echo: Expression, types: Expression, depth: int) -> Expression:
    """Every value of the document that lies at a known path, and unknown ones, as an array."""
    top = each(
        "transform",
        call("map_entries", call("try_variant_get", document, ROOT, ENTRIES)),
        lambda entry: _node(entry.field("key"), entry.field("value"), _entry(echo, entry.field("key"))),
    )

    def one_deeper(so_far: Expression) -> Expression:
        below = call("flatten", each("transform", so_far.field(LEVEL), lambda node: _children(node, types)))
        return let(below.cast(NODES), lambda level: _levels(call("concat", so_far.field(ALL), level), level))

    def all_levels(level: Expression) -> Expression:
        # A fold, where nested lambdas would do: each of those costs Spark's analyzer another round.
        steps = call("sequence", ONE, literal(depth))
        return each_two("aggregate", [steps, _levels(level, level)], lambda so_far, _: one_deeper(so_far)).field(ALL)

    return let(top.cast(NODES), all_levels) if depth else top


def _levels(found: Expression, last: Expression) -> Expression:
    return struct([(ALL, found.cast(NODES)), (LEVEL, last)])


def _children(node: Expression, types: Expression) -> Expression:
    path, said, read = node.field(PATH), node.field(SAID), node.field(READ)
    kind = call("try_element_at", types, path).field("type")

    def under(name: Expression) -> Expression:
        return call("concat", path, literal(SEPARATOR), name)

    entries = call("map_entries", call("try_variant_get", said, ROOT, ENTRIES))
    fields = each(
        "transform", entries, lambda e: _node(under(e.field("key")), e.field("value"), _entry(read, e.field("key")))
    )
    values = each(
        "transform", entries, lambda e: _node(under(literal("value")), e.field("value"), _entry(read, e.field("key")))
    )
    items = each_two(
        "zip_with",
        [call("try_variant_get", said, ROOT, ITEMS), call("try_variant_get", read, ROOT, ITEMS)],
        lambda one, other: _node(under(literal("element")), one, other),
    )
    shapes = (("STRUCT", fields), ("MAP", values), ("ARRAY", items))
    found = cases([(call("startswith", kind, literal(shape)), inner) for shape, inner in shapes])
    return call("coalesce", found, call("array"))


def _node(path: Expression, said: Expression, read: Expression) -> Expression:
    return struct([(PATH, path), (SAID, said), (READ, read)])


def _entry(of: Expression, key: Expression) -> Expression:
    return call("try_element_at", call("try_variant_get", of, ROOT, ENTRIES), key)


def _problem(node: Expression, types: Expression) -> Expression:
    """Why what was read is not what the document says; NULL: it is, or nobody reads this path."""
    said, read = node.field(SAID), node.field(READ)
    label = call("try_element_at", types, node.field(PATH))
    kind = label.field("type")
    wrong = call("concat", label.field("name"), literal(REASONS["type"]), kind)
    lossy = call("concat", label.field("name"), literal(REASONS["digits"]), kind)
    is_decimal = call("startswith", kind, literal("DECIMAL"))
    return cases(
        [
            (_is_nothing(said) | label.is_null(), NULL_TEXT),
            (_is_nothing(read), wrong),
            (is_decimal & _digits(said).compared("<>", _digits(read)), lossy),
            (kind.is_one_of(["FLOAT", "DOUBLE"]) & read.cast("STRING").is_one_of(INFINITIES), wrong),
        ]
    )


def _is_news(node: Expression, types: Expression) -> Expression:
    """Whether the document says something at a path that no field has."""
    said = node.field(SAID)
    is_unknown = ~call("map_contains_key", types, node.field(PATH))
    return is_unknown & said.is_there() & ~call("to_json", said).is_one_of(EMPTY_VALUES)


def _is_nothing(value: Expression) -> Expression:
    return value.is_null() | call("is_variant_null", value)


def _digits(number: Expression) -> Expression:
    """A number's plain text without the zeros at its end."""
    shorter = call("regexp_replace", number.cast("STRING"), literal(r"(\.[0-9]*?)0+$"), literal("$1"))
    return call("rtrim", literal("."), shorter)


def field_types(nodes: Sequence[Column]) -> Expression:
    """Path to name and type of every field, as a map."""
    labels: list[Expression] = []
    for path, node in _paths(nodes, ()):
        kind = spark_type(node.type).simpleString().upper()
        labels += [literal(SEPARATOR.join(path)), struct([("name", literal(dotted(path))), ("type", literal(kind))])]
    return call("map", *labels)


def _paths(nodes: Sequence[Column], above: Path) -> Iterator[tuple[Path, Column]]:
    for node in nodes:
        yield (*above, node.name), node
        if not is_variant(node.type):
            inside = node.children[1:] if node.kind == "map" else node.children
            yield from _paths(inside, (*above, node.name))


def depth_of(nodes: Sequence[Column]) -> int:
    """How many levels of values lie below the top one."""
    return max((1 + depth_of(n.children) for n in nodes if n.children and not is_variant(n.type)), default=0)
