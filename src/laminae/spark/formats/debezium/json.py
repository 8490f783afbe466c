"""Unwraps Debezium messages in JSON: cuts out the row as text, for the decoders and checks of any other JSON record.

A message in the layout of Kafka Connect is cut at the names of its parts. This is exact: a quote inside a string is
escaped, so `,"after":` is always a key, and a cut at a column of that name does not leave a valid document. The rest of
the envelope is parsed, once. Any other message is parsed as a VARIANT, which keeps every digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.codec.debezium.json_lines import DELETE, PUT, TOMBSTONE
from laminae.engine.writer_schemas.inline import BEGIN, PAYLOAD
from laminae.schema.types import quote_identifier
from laminae.spark.catalyst.column_functions import JavaText
from laminae.spark.catalyst.column_list import Columns
from laminae.spark.catalyst.expression import (
    FALSE,
    NULL_TEXT,
    ONE,
    TRUE,
    ZERO,
    Expression,
    any_of,
    call,
    cases,
    column,
    first_text,
    literal,
    options_map,
    when,
)
from laminae.spark.formats.debezium.events import (
    EVENT,
    REASONS,
    WITH_OLD,
    WITH_ROW,
    event_of,
    event_reason,
    whole_event_reason,
)
from laminae.spark.formats.json.exact_check import REASONS as JSON_REASONS
from laminae.spark.formats.json.exact_check import has_half_pair, is_one_document
from laminae.spark.formats.json.from_json import OPTIONS
from laminae.spark.formats.protocol import RAW_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from laminae.codec.decoders import Head

MESSAGE, REFUSED, UNTOLD = "_message", "_refused", "_untold"
"""Columns in addition to the raw columns (whose `value` is the row): the whole message, why it is rejected, and whether
it contains an inline schema that is not known yet."""
BESIDE = (MESSAGE, EVENT, REFUSED, UNTOLD)
OLD_TEXT, STAMP = "_old_text", "_stamp"
"""Further columns where both rows of an event are read: the text of the row before it, and the version of both rows."""
NO_VERSION = 0
"""The version of a record without a row: no decoder has this version, so none decodes it."""
STAR, VALUE = Expression("*"), column("value")
TEXT = VALUE.cast("STRING")
HEAD, BODY, UPTO, TAIL, LEFT, AFTER_TEXT, BRACES, TOLD, PLAIN, DOCUMENT, OP, ROW, SEQUENCE = (
    column(f"_{name}")
    for name in (
        "head",
        "body",
        "upto",
        "tail",
        "left",
        "after",
        "braces",
        "told",
        "plain",
        "document",
        "op",
        "inside",
        "sequence",
    )
)
UNKNOWN_HEAD = -1
SOURCE, AFTER, BEFORE = ',"source":{', ',"after":', '{"before":'
# A longer text cannot be a tombstone (empty or null).
SHORT = 16


def opening(spark: SparkSession, heads: Sequence[Head], sequence: str, has_old_rows: bool = False) -> list[Columns]:
    """Successive projections: the head (inline schema), the parts of the envelope, their values, the row as a record.

    With `has_old_rows` the record is the row after the event, and `_old_text` has the row before it.
    """
    java = JavaText(spark.sparkContext)
    opened = (_OpenedWhole if has_old_rows else _Opened)(tuple(heads), sequence)

    def stage(*made: tuple[Expression, Expression]) -> Columns:
        columns = Columns(spark).add(STAR)
        for value, name in made:
            columns.add(value, _name(name))
        return columns

    return [
        stage((opened.head(), HEAD)),
        stage((opened.body(), BODY)),
        stage((_left_of(BODY, SOURCE), UPTO), (_right_of(BODY, SOURCE), TAIL)),
        stage((_left_of(UPTO, AFTER), LEFT), (_right_of(UPTO, AFTER), AFTER_TEXT), (opened.told(), TOLD)).add_all(
            {_name(BRACES): java.count(F.col(_name(TAIL)), "}")}
        ),
        stage((opened.is_plain(), PLAIN)),
        stage((opened.document(), DOCUMENT)),
        stage((opened.op(), OP)),
        stage((opened.row(), ROW), (opened.sequence(), SEQUENCE), *opened.more()),
        stage((opened.reason(), column(REFUSED))),
        opened.record(Columns(spark)),
    ]


def head_text() -> Expression:
    """The head of a message with an unknown inline schema: everything up to and including the key `payload`."""
    return call("concat", _left_of(TEXT, PAYLOAD), literal(PAYLOAD))


class _Opened:
    """The expressions of each projection, over the columns of the earlier ones.

    `sequence` is the path of the number that orders events, such as `source.lsn`.
    """

    def __init__(self, heads: tuple[Head, ...], sequence: str) -> None:
        self._heads = heads
        self._path = sequence
        *self._above, self._ordering = sequence.split(".")

    def head(self) -> Expression:
        """The index of the message's head among the known ones; NULL if it has no inline schema."""
        known = [(call("startswith", TEXT, literal(head.text)), literal(i)) for i, head in enumerate(self._heads)]
        brings = call("startswith", TEXT, literal(BEGIN)) & call("contains", TEXT, literal(PAYLOAD))
        return cases([*known, (brings, literal(UNKNOWN_HEAD))])

    def body(self) -> Expression:
        """The envelope: the text between the head and the brace that closes the message."""
        sizes = [(i, len(head.text.encode())) for i, head in enumerate(self._heads)]
        inside = [
            (HEAD.compared("=", i), Expression(f"substring({VALUE.sql}, {size + 1}, length({VALUE.sql}) - {size + 1})"))
            for i, size in sizes
        ]
        return (cases(inside, VALUE) if inside else VALUE).cast("STRING")

    def told(self) -> Expression:
        """The part of the envelope after the row, as a struct; `op` is NULL if the layout is not Kafka Connect's."""
        number = f"{quote_identifier(self._ordering)}: BIGINT"
        inner = f"source: STRUCT<{number}>" if self._above else f"source: STRUCT<lsn: BIGINT>, {number}"
        kind = f"STRUCT<{inner}, op: STRING, transaction: STRUCT<id: STRING>>"
        return call("from_json", call("concat", literal('{"source":{'), TAIL), literal(kind), options_map(OPTIONS))

    def is_plain(self) -> Expression:
        """Whether the parts that were cut out are those of the message, and the message is a single document."""
        closing = literal(2) + when(TOLD.field("transaction").is_there(), ONE, ZERO)
        is_object = call("json_array_length", call("concat", literal("["), self._before(), literal("]")))
        has_after = _is_cut(UPTO, LEFT, AFTER, AFTER_TEXT)
        return any_of(
            [
                call("startswith", BODY, literal(BEFORE))
                & call("endswith", TEXT, literal("}"))
                & call("endswith", TAIL, literal("}"))
                & _is_cut(BODY, UPTO, SOURCE, TAIL)
                & BRACES.compared("=", closing)
                & TOLD.field("op").is_there()
                & self._told_sequence().is_there()
                & (has_after | TOLD.field("op").compared("=", literal(DELETE)))
                & (self._before().compared("=", literal("null")) | is_object.compared("=", 1))
            ]
        )

    def document(self) -> Expression:
        is_open = ~(PLAIN | _is_tombstone() | self._is_untold())
        return cases([(is_open & is_one_document(TEXT), call("try_parse_json", TEXT))])

    def op(self) -> Expression:
        return cases([(PLAIN, TOLD.field("op")), (_is_tombstone(), literal(TOMBSTONE))], _said("op", "string"))

    def row(self) -> Expression:
        """The text of the row that the event inserts or updates, or of `before`, which has the key of a deleted row."""
        text = cases(
            [
                (~OP.is_one_of(WITH_ROW), NULL_TEXT),
                (PLAIN & OP.is_one_of(PUT), AFTER_TEXT),
                (PLAIN, self._before()),
                (OP.is_one_of(PUT), call("to_json", _said("after", "variant"))),
            ],
            call("to_json", _said("before", "variant")),
        )
        return call("nullif", text, literal("null"))

    def more(self) -> list[tuple[Expression, Expression]]:
        """Further columns that are extracted from the message."""
        return []

    def sequence(self) -> Expression:
        return when(PLAIN, self._told_sequence(), _said(self._path, "bigint"))

    def reason(self) -> Expression:
        """Why the message is rejected; NULL if it is not, although its row may still fail to decode."""
        refused = [(i, head.refusal) for i, head in enumerate(self._heads) if head.refusal is not None]
        broken = ~(PLAIN | _is_tombstone()) & DOCUMENT.is_null()
        return first_text(
            [
                *(when(HEAD.compared("=", i), literal(refusal)) for i, refusal in refused),
                when(self._is_untold(), literal(REASONS["head"])),
                when(broken, literal(REASONS["json"])),
                # Parsing into a VARIANT hides an unpaired surrogate. In a plain message the row's own check finds it.
                when(DOCUMENT.is_there() & has_half_pair(TEXT), literal(JSON_REASONS["surrogate"])),
                self._event_reason(),
            ]
        )

    def _event_reason(self) -> Expression:
        return event_reason(OP, ROW.is_there(), SEQUENCE, self._path)

    def record(self, columns: Columns) -> Columns:
        has_row = ROW.is_there() & column(REFUSED).is_null()
        own = {
            "value": when(has_row, ROW.cast("BINARY")),
            "version": when(has_row, self._version(), literal(NO_VERSION)).cast("INT"),
        }
        for name in RAW_COLUMNS:
            columns.add(own.get(name, column(name)), name)
        columns.add(VALUE, MESSAGE).add(event_of(OP, SEQUENCE), EVENT)
        return columns.add(column(REFUSED)).add(self._is_untold(), UNTOLD)

    def _version(self) -> Expression:
        """The version bound to the message's head, else the stamp of the record."""
        bound_heads = [(i, head.version) for i, head in enumerate(self._heads) if head.version is not None]
        versions = [(HEAD.compared("=", i), literal(version)) for i, version in bound_heads]
        return cases(versions, column("version")) if versions else column("version")

    def _is_untold(self) -> Expression:
        return call("coalesce", HEAD.compared("=", UNKNOWN_HEAD), FALSE)

    def _before(self) -> Expression:
        return Expression(f"substring({LEFT.sql}, {len(BEFORE) + 1})")

    def _told_sequence(self) -> Expression:
        return (TOLD.field("source") if self._above else TOLD).field(self._ordering)


class _OpenedWhole(_Opened):
    """The same for a table without a key: the row before the event is extracted as well."""

    def row(self) -> Expression:
        return self._text("after", AFTER_TEXT, PUT)

    def more(self) -> list[tuple[Expression, Expression]]:
        return [(self._text("before", self._before(), WITH_OLD), column(OLD_TEXT))]

    def _text(self, part: str, cut: Expression, ops: Sequence[str]) -> Expression:
        text = when(PLAIN, cut, call("to_json", _said(part, "variant")))
        return when(OP.is_one_of(ops), call("nullif", text, literal("null")))

    def _event_reason(self) -> Expression:
        return whole_event_reason(OP, ROW.is_there(), column(OLD_TEXT).is_there(), SEQUENCE, self._path)

    def record(self, columns: Columns) -> Columns:
        own = super().record(columns)
        old = when(column(REFUSED).is_null(), column(OLD_TEXT))
        return own.add(old, OLD_TEXT).add(self._version().cast("INT"), STAMP)


def _left_of(text: Expression, part: str) -> Expression:
    return call("substring_index", text, literal(part), ONE)


def _right_of(text: Expression, part: str) -> Expression:
    return call("substring_index", text, literal(part), literal(-1))


def _is_cut(whole: Expression, left: Expression, part: str, right: Expression) -> Expression:
    """Whether the text contains this part exactly once."""
    sides = call("octet_length", left) + call("octet_length", right) + literal(len(part))
    return call("octet_length", whole).compared("=", sides)


def _is_tombstone() -> Expression:
    is_short = call("coalesce", call("octet_length", VALUE).compared("<", SHORT), TRUE)
    return is_short & call("trim", call("coalesce", TEXT, literal(""))).is_one_of(["", "null"])


def _said(path: str, kind: str) -> Expression:
    """The value at this path of the document, with or without the wrapper of `schema` and `payload`."""
    wrapped = _got("$.payload", "variant")
    is_wrapped = wrapped.is_there() & ~call("is_variant_null", wrapped)
    return when(is_wrapped, _got(f"$.payload.{path}", kind), _got(f"$.{path}", kind))


def _got(path: str, kind: str) -> Expression:
    return call("try_variant_get", DOCUMENT, literal(path), literal(kind))


def _name(made: Expression) -> str:
    return made.sql.strip("`")
