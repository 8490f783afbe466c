"""The exact check of a suspect record: compares its document with what was read from it, value by value.

Both are converted to VARIANT and flattened level by level, so the size of the expression does not depend on the schema.
It parses the text several times and runs interpreted, inside lambdas: apply it to suspects only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.schema.column import dotted
from laminae.schema.types import is_variant
from laminae.spark.catalyst.expression import (
    FALSE,
    NULL_TEXT,
    ONE,
    ZERO,
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
    when,
)
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats import temporal_text
from laminae.spark.formats.json.fast_check import may_be_rounded
from laminae.spark.formats.json.from_json import OPTIONS
from laminae.spark.formats.projection import first_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from laminae.schema.column import Column, Path

REASONS = {
    "empty": "the message is empty",
    "encoding": "the message is not valid UTF-8",
    "surrogate": "the message has half of a surrogate pair, such as \\ud800, which is not a character",
    "malformed": "the message is not JSON",
    "quotes": "the message is not JSON: single quotes",
    "not an object": "the message is JSON but not an object",
    "trailing": "text follows the JSON document",
    "duplicate": "a key occurs twice in one object",
    "too long": "the message holds a text or number that is too long to read",
    "type": temporal_text.REASONS["type"],
    "digits": temporal_text.REASONS["digits"],
    "case": " differs only in case from the column ",
    "unknown": "the message has a field that the source does not accept",
    "version": "unknown schema version ",
    "suspect": "the message needs the exact check",
}
REASON, UNKNOWN_FIELDS = "reason", "unknown"

# The longest string that Jackson reads (its StreamReadConstraints, whose default Spark keeps).
LONGEST_TEXT = 20_000_000
CORRUPT = "_corrupt_record"
EMPTY_VALUES = ("null", "{}", "[]")
INFINITIES = ("Infinity", "-Infinity")
# Numbers that a VARIANT stores inexactly, as a DOUBLE: those with an exponent, or more than 38 digits.
LONG_NUMBER = r"[0-9.]{17}[eE]|[0-9.]{39}|[eE]-[0-9]{3}"
PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
SURROGATE = r"\\u[dD][89a-fA-F]"
ROOT, ENTRIES, ITEMS = literal("$"), literal("MAP<STRING, VARIANT>"), literal("ARRAY<VARIANT>")
# The fields of a node: its path, the document's value at that path, and the value that was read.
PATH, SAID, READ = "path", "said", "read"
NODES = f"ARRAY<STRUCT<{PATH}: STRING, {SAID}: VARIANT, {READ}: VARIANT>>"
ALL, LEVEL = "all", "level"
# The index of the layer that contains a field, where there are several.
LAYER = "layer"
# Separates the names of a path; a dot may be part of a name.
SEPARATOR = "\x1f"


def exact_check(
    text: Expression, echoes: Sequence[Expression], types: Expression, depth: int, finds_unknown: bool
) -> Expression:
    """A struct of the reason why the record cannot be read (NULL if it can) and whether it has unknown fields.

    `echoes` are the values that were read, converted back to JSON; if there are several, `layer` in `types` says which
    of them contains a field. `types` and `depth` describe the fields that the schema can read.
    """

    def judged(record: Expression) -> Expression:
        document, types, echo = record.field("document"), record.field("types"), record.field("echo")

        def read_as(key: Expression) -> Expression:
            if len(echoes) == 1:
                return _entry(echo, key)
            return _entry(call("get", echo, call("try_element_at", types, key).field(LAYER)), key)

        nodes = _nodes(document, read_as, types, depth)
        return let(nodes, lambda all_nodes: outcome(record.field("text"), document, all_nodes, types))

    def outcome(said: Expression, document: Expression, nodes: Expression, types: Expression) -> Expression:
        is_long = call("rlike", said, literal(LONG_NUMBER))
        problem = first_in(nodes, lambda node: _problem(node, types, is_long))
        reason = first_text([_broken(said, document), problem])
        news = any_of([each("exists", nodes, lambda node: _is_news(node, types))]) if finds_unknown else FALSE
        return struct([(REASON, reason), (UNKNOWN_FIELDS, news)])

    read = [call("try_parse_json", echo) for echo in echoes]
    record = struct(
        [
            ("text", text),
            ("document", call("try_parse_json", text)),
            ("echo", read[0] if len(read) == 1 else call("array", *read)),
            ("types", types),
        ]
    )
    return let(record, judged)


def _broken(text: Expression, document: Expression) -> Expression:
    """Why the text is not exactly one JSON object; NULL if it is."""
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
        (has_half_pair(text), "surrogate"),
        (document.is_null() & is_long, "too long"),
        (document.is_null(), "duplicate"),
    ]
    return cases([(test, literal(REASONS[name])) for test, name in branches])


def has_half_pair(text: Expression) -> Expression:
    """Whether the text has an escape of an unpaired surrogate.

    Escaped backslashes are removed first, then complete pairs.
    """
    plain = call("replace", text, literal("\\\\"), literal("_"))
    halves = call("regexp_replace", plain, literal(PAIR), literal(""))
    return call("contains", text, literal("\\u")) & call("rlike", halves, literal(SURROGATE))


def is_one_document(text: Expression) -> Expression:
    """Whether nothing follows the document. A parser ignores what follows."""
    length = {end: call("json_array_length", call("concat", literal("["), text, literal(end))) for end in ("]", ",0]")}
    # A text that closes the bracket early has the same length in both cases.
    return any_of([length["]"].compared("=", 1) & length[",0]"].compared("=", 2)])


def _is_object(text: Expression, options: Mapping[str, str]) -> Expression:
    parse_options = {**options, "columnNameOfCorruptRecord": CORRUPT}
    parsed = call("from_json", text, literal(f"{CORRUPT} STRING"), options_map(parse_options))
    return any_of([parsed.is_there() & parsed.field(CORRUPT).is_null()])


def _nodes(
    document: Expression, read_as: Callable[[Expression], Expression], types: Expression, depth: int
) -> Expression:
    """An array of all values of the document at known paths, and of unknown values next to them."""
    top = each(
        "transform",
        call("map_entries", call("try_variant_get", document, ROOT, ENTRIES)),
        lambda entry: _node(entry.field("key"), entry.field("value"), read_as(entry.field("key"))),
    )

    def one_deeper(so_far: Expression) -> Expression:
        below = call("flatten", each("transform", so_far.field(LEVEL), lambda node: _children(node, types)))
        return let(below.cast(NODES), lambda level: _levels(call("concat", so_far.field(ALL), level), level))

    def all_levels(level: Expression) -> Expression:
        # A fold instead of nested lambdas: each level of nesting costs Spark's analyzer another iteration.
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
    children = cases([(call("startswith", kind, literal(shape)), inner) for shape, inner in shapes])
    return call("coalesce", children, call("array"))


def _node(path: Expression, said: Expression, read: Expression) -> Expression:
    return struct([(PATH, path), (SAID, said), (READ, read)])


def _entry(of: Expression, key: Expression) -> Expression:
    return call("try_element_at", call("try_variant_get", of, ROOT, ENTRIES), key)


def _problem(node: Expression, types: Expression, has_long_number: Expression) -> Expression:
    """Why the value that was read differs from the document; NULL if it does not, or if no field has this path."""
    said, read = node.field(SAID), node.field(READ)
    label = call("try_element_at", types, node.field(PATH))
    kind = label.field("type")
    wrong = call("concat", label.field("name"), literal(REASONS["type"]), kind)
    lossy = call("concat", label.field("name"), literal(REASONS["digits"]), kind)
    is_decimal = call("startswith", kind, literal("DECIMAL"))
    # A number of the document may have been rounded when it was read as text. Comparing texts does not show this: a
    # number can be written in several ways. Text of the document is never rounded.
    is_rounded = any_of([may_be_rounded(_plain(read))]) & ~_is_of(said, "STRING")
    is_unsure = has_long_number & _is_of(said, "DOUBLE")
    same_number = _digits(said).compared("<=>", _digits(_plain(read).try_cast("DECIMAL(38, 18)")))
    return cases(
        [
            (label.is_null(), _case_problem(node, types)),
            (_is_nothing(said), NULL_TEXT),
            (_is_nothing(read), wrong),
            (is_decimal & _digits(said).compared("<>", _digits(read)), lossy),
            (is_decimal & is_unsure, lossy),
            (kind.compared("=", literal("STRING")) & is_rounded & (is_unsure | ~same_number), lossy),
            (kind.is_one_of(["FLOAT", "DOUBLE"]) & _plain(read).is_one_of(INFINITIES), wrong),
        ]
    )


def _case_problem(node: Expression, types: Expression) -> Expression:
    """The error for an unknown path that differs from a column only in case: ignoring it would lose its value."""
    path = node.field(PATH)
    folded = _folded(path)
    alike = each("filter", call("map_keys", types), lambda known: _folded(known).compared("=", folded))
    column = call("try_element_at", types, call("get", alike, ZERO)).field("name")
    own = call("substring_index", path, literal(SEPARATOR), literal(-1))
    return when(_says(node), call("concat", own, literal(REASONS["case"]), column))


def _folded(name: Expression) -> Expression:
    """Equal for all names with an equal `collation_key`: upper case joins names that lower case alone keeps apart.

    Spark optimises `lower(upper(x))` to `lower(x)`; the `replace` in between prevents this.
    """
    return call("lower", call("replace", call("upper", name), literal("\u0130"), literal("I")))


def _says(node: Expression) -> Expression:
    said = node.field(SAID)
    return said.is_there() & ~call("to_json", said).is_one_of(EMPTY_VALUES)


def _is_news(node: Expression, types: Expression) -> Expression:
    """Whether the document has a non-empty value at a path that no field has."""
    return ~call("map_contains_key", types, node.field(PATH)) & _says(node)


def _is_of(value: Expression, kind: str) -> Expression:
    return call("schema_of_variant", value).compared("=", literal(kind))


def _plain(value: Expression) -> Expression:
    return value.cast("STRING")


def _is_nothing(value: Expression) -> Expression:
    return value.is_null() | call("is_variant_null", value)


def _digits(number: Expression) -> Expression:
    """The text of a number without trailing zeros after the decimal point."""
    shorter = call("regexp_replace", number.cast("STRING"), literal(r"(\.[0-9]*?)0+$"), literal("$1"))
    return call("rtrim", literal("."), shorter)


def field_types(nodes: Sequence[Column], floats: Collection[Path] = ()) -> Expression:
    """A map from the path of each field to its name and type. `floats` are read as text and converted later."""
    labels: list[Expression] = []
    for path, name, kind in field_labels(nodes, floats):
        labels += [literal(path), struct([("name", literal(name)), ("type", literal(kind))])]
    return call("map", *labels)


def field_labels(nodes: Sequence[Column], floats: Collection[Path] = ()) -> Iterator[tuple[str, str, str]]:
    """Path, name and type of every field."""
    for path, node in _paths(nodes, ()):
        kind = "NUMBER" if path in floats else spark_type(node.type).simpleString().upper()
        yield SEPARATOR.join(path), dotted(path), kind


def _paths(nodes: Sequence[Column], above: Path) -> Iterator[tuple[Path, Column]]:
    for node in nodes:
        yield (*above, node.name), node
        if not is_variant(node.type):
            inside = node.children[1:] if node.kind == "map" else node.children
            yield from _paths(inside, (*above, node.name))


def depth_of(nodes: Sequence[Column]) -> int:
    """The number of levels below the top level."""
    return max((1 + depth_of(n.children) for n in nodes if n.children and not is_variant(n.type)), default=0)
