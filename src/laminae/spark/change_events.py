"""What any Debezium event says beside its row, however it was written: what is done, in which order, and why not.

`_event` stands beside the row of a decoded record.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.codec.event_lines import DELETE, PUT, SNAPSHOT, TOMBSTONE
from laminae.codec.sent_values import UNAVAILABLE
from laminae.spark.expression import (
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
"""A struct: `op`, `sequence`, the BIGINT that orders events, and `moves`: the row that it deletes goes on under another
key, or what it inserts comes from one, as a column of raw records says where their log knows."""
OLD = "_old"
"""Beside `_row`, the row after an event of a table without a key: the one before it, with the same columns."""
INSERT, UPDATE, TRUNCATE, MESSAGE = "c", "u", "t", "m"
IGNORED = (MESSAGE, TOMBSTONE)
WITH_ROW = (*PUT, DELETE)
WITH_OLD = (UPDATE, DELETE)
IN_BEFORE = "in before: "
"""How the reason begins of what is wrong with the row before an event."""
BETWEEN = ","
"""The places of columns in a text."""
REASONS = {
    "event": "the record is no Debezium event: it has no op",
    "op": "op is none of c, r, u, d, t and m: ",
    "after": "after is missing, which is the row",
    "before": "before is missing, which has the key of the row that goes",
    "sequence": "{name} is missing, which orders events",
    "range": "{name}, which orders events, is not within -2^62 and 2^62",
    "json": "the message is not one JSON document, or has a key twice in one object",
    "head": "the schema that it brings along was not taken up",
    "old": "before is missing, and a source without a PRIMARY KEY knows rows by their values alone: the table upstream "
    "needs REPLICA IDENTITY FULL, or the source its key",
    "blank": "before has no value at all: the table upstream needs REPLICA IDENTITY FULL",
}


def event_of(op: Expression, sequence: Expression) -> Expression:
    """Twice the number that orders events, and one more but for a row of a snapshot.

    The first change behind a snapshot may have the very place that all rows of the snapshot have.
    """
    return struct([("op", op), ("sequence", _place(op, sequence)), ("moves", call("coalesce", column(MOVES), FALSE))])


def event_reason(op: Expression, has_row: Expression, sequence: Expression, name: str) -> Expression:
    """Why a record is no event that can be taken; NULL: it can. `has_row` is about what its op takes the row from."""
    missing = [
        (op.is_one_of(PUT) & ~has_row, literal(REASONS["after"])),
        (_is(op, DELETE) & ~has_row, literal(REASONS["before"])),
    ]
    return _reason(op, missing, sequence, name)


def whole_event_reason(
    op: Expression, has_row: Expression, has_old: Expression, sequence: Expression, name: str
) -> Expression:
    """The same of a table without a key, whose events must have the row before them too."""
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
    """NULL where it is no BIGINT."""
    return call("try_add", call("try_multiply", sequence, literal(2)), when(_is(op, SNAPSHOT), literal(0), literal(1)))


def unavailable_columns(columns: Sequence[tuple[Expression, spark.DataType]]) -> Expression:
    """The places of columns whose values an event does not have, as a text; NULL where it has all.

    Not as an array: Spark hands on columns of these slowly (`laminae.spark.views.batches`).
    """
    tests = [(place, test) for place, (value, kind) in enumerate(columns) if (test := is_unavailable(value, kind))]
    if not tests:
        return NULL_TEXT
    places = call("array", *(when(test, literal(str(place))) for place, test in tests))
    return when(any_of([test for _, test in tests]), call("array_join", places, literal(BETWEEN)))


def is_unavailable(value: Expression, kind: spark.DataType) -> Expression | None:
    """Whether this is what stands for a value of the type that is stored apart and did not change; None: there is none.

    Numbers in an array are the bytes of the text, and an array of UUIDs has the one that Java makes of it.
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
# As Java's UUID.nameUUIDFromBytes makes it.
_UUID = str(uuid.UUID(bytes=hashlib.md5(UNAVAILABLE.encode(), usedforsecurity=False).digest(), version=3))
