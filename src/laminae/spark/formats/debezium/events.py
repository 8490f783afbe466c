"""The part of a Debezium event that does not depend on its encoding: operation, order, and why an event is rejected.

A decoded record has it in the column `_event`, next to its row.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.codec.debezium.json_lines import DELETE, PUT, SNAPSHOT, TOMBSTONE
from laminae.codec.value_encodings import UNAVAILABLE
from laminae.spark.catalyst.expression import (
    FALSE,
    NULL_TEXT,
    Expression,
    any_of,
    call,
    cases,
    column,
    each,
    literal,
    struct,
    when,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENT, MOVES = "_event", "_moves"
"""`_event` is a struct of `op`, `sequence` (the BIGINT that orders events) and `moves`: the event is part of a primary
key change, that is, a delete whose row continues under another key, or the insert of such a row. Raw records have the
column `_moves` if their source knows it."""
OLD = "_old"
"""For a table without a key: the row before the event, with the same columns as `_row`, the row after it."""
INSERT, UPDATE, TRUNCATE, MESSAGE = "c", "u", "t", "m"
IGNORED = (MESSAGE, TOMBSTONE)
WITH_ROW = (*PUT, DELETE)
WITH_OLD = (UPDATE, DELETE)
IN_BEFORE = "in before: "
"""Prefix of an error in the row before an event."""
BETWEEN = ","
"""Separates the column indexes in a text."""
REASONS = {
    "event": "the record is not a Debezium event: it has no op",
    "op": "op is not one of c, r, u, d, t and m: ",
    "after": "after, which contains the row, is missing",
    "before": "before, which contains the key of the deleted row, is missing",
    "sequence": "{name}, which orders events, is missing",
    "range": "{name}, which orders events, is not within -2^62 and 2^62",
    "json": "the message is not one JSON document, or has a key twice in one object",
    "head": "its inline schema was not accepted",
    "old": "before is missing, and a source without a PRIMARY KEY identifies rows by their values: set REPLICA "
    "IDENTITY FULL on the upstream table, or declare the key of the source",
    "blank": "before has no values: set REPLICA IDENTITY FULL on the upstream table",
}


def event_of(op: Expression, sequence: Expression) -> Expression:
    """The `_event` struct. `sequence` becomes twice the ordering number, plus one unless the row is from a snapshot.

    The first change after a snapshot may have the same number (such as the LSN) as all rows of the snapshot.
    """
    return struct([("op", op), ("sequence", _place(op, sequence)), ("moves", call("coalesce", column(MOVES), FALSE))])


def event_reason(op: Expression, has_row: Expression, sequence: Expression, name: str) -> Expression:
    """Why a record is not a valid event; NULL if it is.

    `has_row` says whether the part from which its op takes the row (`before` or `after`) is present.
    """
    missing = [
        (op.is_one_of(PUT) & ~has_row, literal(REASONS["after"])),
        (_is(op, DELETE) & ~has_row, literal(REASONS["before"])),
    ]
    return _reason(op, missing, sequence, name)


def whole_event_reason(
    op: Expression, has_row: Expression, has_old: Expression, sequence: Expression, name: str
) -> Expression:
    """The same for a table without a key, whose updates and deletes must have `before`."""
    missing = [
        (op.is_one_of(PUT) & ~has_row, literal(REASONS["after"])),
        (op.is_one_of(WITH_OLD) & ~has_old, literal(REASONS["old"])),
    ]
    return _reason(op, missing, sequence, name)


def _reason(
    op: Expression, missing: Sequence[tuple[Expression, Expression]], sequence: Expression, name: str
) -> Expression:
    known: Sequence[str] = [*WITH_ROW, TRUNCATE, *IGNORED]
    return cases(
        [
            (op.is_null(), literal(REASONS["event"])),
            (~op.is_one_of(known), call("concat", literal(REASONS["op"]), op)),
            *missing,
            (~op.is_one_of(IGNORED) & sequence.is_null(), literal(REASONS["sequence"].format(name=name))),
            (~op.is_one_of(IGNORED) & _place(op, sequence).is_null(), literal(REASONS["range"].format(name=name))),
        ]
    )


def _place(op: Expression, sequence: Expression) -> Expression:
    """The value of `sequence` in `_event`; NULL if it does not fit in a BIGINT."""
    return call("try_add", call("try_multiply", sequence, literal(2)), when(_is(op, SNAPSHOT), literal(0), literal(1)))


def unavailable_columns(columns: Sequence[tuple[Expression, spark.DataType]]) -> Expression:
    """The indexes of the columns whose values are unavailable in an event, as text; NULL if none is.

    Not an array, because Spark transfers array columns slowly (see `laminae.spark.tasks.arrow_batches`).
    """
    tests = [(place, test) for place, (value, kind) in enumerate(columns) if (test := is_unavailable(value, kind))]
    if not tests:
        return NULL_TEXT
    places = call("array", *(when(test, literal(str(place))) for place, test in tests))
    return when(any_of([test for _, test in tests]), call("array_join", places, literal(BETWEEN)))


def is_unavailable(value: Expression, kind: spark.DataType) -> Expression | None:
    """Whether the value is Debezium's placeholder for an unchanged value stored out of line (such as TOAST).

    None if the type has no placeholder. In an array of numbers the placeholder is the bytes of its text, in an array of
    UUIDs the name-based UUID that Java makes of it.
    """
    match kind:
        case spark.StringType():
            return value.is_one_of([UNAVAILABLE, json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":"))])
        case spark.BinaryType():
            return value.compared("=", _BYTES)
        case spark.MapType(keyType=spark.StringType()):
            return call("map_contains_key", value, literal(UNAVAILABLE))
        case spark.ArrayType(elementType=spark.StringType()):
            first = call("get", value, literal(0))
            return call("size", value).compared("=", 1) & first.is_one_of([UNAVAILABLE, _UUID])
        case spark.ArrayType(elementType=spark.BinaryType()):
            return call("size", value).compared("=", 1) & call("get", value, literal(0)).compared("=", _BYTES)
        case spark.ArrayType(elementType=spark.ByteType() | spark.ShortType() | spark.IntegerType() | spark.LongType()):
            return each("transform", value, lambda item: item.cast("INT")).compared("=", _CODES)
    return None


def _is(op: Expression, name: str) -> Expression:
    return op.compared("=", literal(name))


_BYTES = Expression(f"X'{UNAVAILABLE.encode().hex()}'")
_CODES = call("array", *(literal(byte) for byte in UNAVAILABLE.encode()))
# The same as Java's UUID.nameUUIDFromBytes.
_UUID = str(uuid.UUID(bytes=hashlib.md5(UNAVAILABLE.encode(), usedforsecurity=False).digest(), version=3))
