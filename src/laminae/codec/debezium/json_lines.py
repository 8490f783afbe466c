"""Parses Debezium JSON events to Arrow, many at once. Returns None for messages that need the exact decoder.

As in `json_lines`, the result is that of the single-event decoder or nothing: whatever the two might read differently
is left to that decoder. No Spark here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.codec.debezium.avro_schema import AFTER, BEFORE, OP
from laminae.codec.json_lines import parsed_lines
from laminae.codec.value_encodings import rule_of
from laminae.schema.column import columns_of
from laminae.schema.nesting import inner_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from laminae.schema.column import Column

    Int32s = NDArray[np.int32]

PLACE, ROW, SOURCE = "place", "row", "source"
PUT, DELETE, SNAPSHOT, TOMBSTONE = ("c", "r", "u"), "d", "r", "tombstone"
KNOWN = frozenset((BEFORE, AFTER, SOURCE, OP, "ts_ms", "ts_us", "ts_ns", "transaction"))
"""The fields of an envelope."""
# The years 1 to 9999, in seconds. Database values beyond them are left to the exact decoder.
FIRST, LAST = -62_135_596_800, 253_402_300_799
SECOND, DAY = 1_000_000, 86_400
# Arrow infers a type for everything it finds, level by level; a few hundred levels are too many for it.
DEEPEST = 100
# Jackson rejects longer names.
LONGEST_NAME = 50_000
_MICROS = {"any_timestamp_millis": 1000, "any_timestamp_micros": 1}
_PLAIN = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string())


@dataclass(frozen=True)
class EventReader:
    """Reads events of a table with these columns, some of which are its key. See `event_reader`."""

    schema: pa.Schema
    keys: tuple[str, ...]
    order: str

    def read(self, messages: pa.Array) -> pa.Table | None:
        """`op`, `place` (the event order) and `row` of each message; null is a tombstone.

        None: one needs the exact decoder.
        """
        events = messages.drop_null()
        try:
            decoded = self._events(events) if len(events) else self.made.empty_table()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            # A name may not be UTF-8. The single-event decoder reads the same messages and reports the reasons.
            return None
        if decoded is None or len(events) == len(messages):
            return decoded
        places = pc.cumulative_sum(pc.is_valid(messages).cast(pa.int64()))
        aligned = decoded.take(pc.if_else(pc.is_valid(messages), pc.subtract(places, 1), None))
        return aligned.set_column(0, OP, pc.fill_null(aligned.column(OP), TOMBSTONE))

    def _events(self, messages: pa.Array) -> pa.Table | None:
        text, ends = _text(messages)
        if _deepest(text, ends) > DEEPEST:
            return None
        parsed = parsed_lines(text, self._asked, "infer")
        if parsed is None or parsed.num_rows != len(messages) or not KNOWN.issuperset(parsed.column_names):
            return None
        if _longest_name(parsed.schema) > LONGEST_NAME:
            return None
        row = self._asked.field(AFTER).type
        # Unexpected fields are appended after the expected ones: a column that is new, or was dropped.
        if parsed.schema.field(AFTER).type != row or parsed.schema.field(BEFORE).type != row:
            return None
        ops, before, after = (_whole(parsed, name) for name in (OP, BEFORE, AFTER))
        is_put = pc.is_in(ops, pa.array(PUT))
        if not _all(pc.or_(is_put, pc.equal(ops, DELETE))):
            return None
        rows = pc.if_else(is_put, after, before)
        columns = dict(zip(self.schema.names, rows.flatten(), strict=True))
        if rows.null_count or any(columns[name].null_count for name in self.keys):
            return None
        if any(columns[name].null_count for name in self._complete):
            return None
        values = [_value(columns[node.name], node) for node in columns_of(self.schema)]
        if any(value is None for value in values):
            return None
        source, _, name = self.order.rpartition(".")
        numbers = pc.struct_field(_whole(parsed, SOURCE), name) if source else _whole(parsed, name)
        if numbers.null_count:
            return None
        # The first change after a snapshot may have the same position as all rows of the snapshot.
        places = pc.add_checked(pc.multiply_checked(numbers, 2), pc.not_equal(ops, SNAPSHOT).cast(pa.int64()))
        row = pa.StructArray.from_arrays(values, fields=list(self.made.field(ROW).type))
        return pa.table([ops, places, row], schema=self.made)

    @cached_property
    def _asked(self) -> pa.Schema:
        row = pa.struct([pa.field(node.name, _asked(node)) for node in columns_of(self.schema)])
        source, _, name = self.order.rpartition(".")
        number = pa.field(name, pa.int64())
        own = [pa.field(SOURCE, pa.struct([number]))] if source else [pa.field(SOURCE, pa.struct([])), number]
        return pa.schema([pa.field(BEFORE, row), pa.field(AFTER, row), pa.field(OP, pa.string()), *own])

    @cached_property
    def made(self) -> pa.Schema:
        row = pa.struct([pa.field(field.name, field.type) for field in self.schema])
        return pa.schema([pa.field(OP, pa.string()), pa.field(PLACE, pa.int64()), pa.field(ROW, row)])

    @cached_property
    def _complete(self) -> tuple[str, ...]:
        """Columns in which a NULL needs the exact decoder: the field may be absent and have a default."""
        nodes = columns_of(self.schema)
        return tuple(node.name for node in nodes if not node.nullable or node.default is not None)


def event_reader(schema: pa.Schema, keys: Sequence[str], order: str) -> EventReader | None:
    """A reader for these columns, in the types that are sent; None if one has a type that Arrow reads differently."""
    if order.count(".") > 1 or (order.startswith(f"{SOURCE}.") != ("." in order)):
        return None
    return EventReader(schema, tuple(keys), order) if all(map(_is_plain, columns_of(schema))) else None


def _is_plain(node: Column) -> bool:
    rule = rule_of(node.field)
    if rule is None:
        return node.type in _PLAIN
    name, kind = rule[0], node.type
    if name == "number":
        return bool(pa.types.is_float64(kind))
    if name == "any_date":
        return bool(pa.types.is_date32(kind))
    return name in _MICROS and kind.unit == "us" and kind.tz in (None, "UTC")


def _asked(node: Column) -> pa.DataType:
    """The type to parse: dates and times as numbers. A time sent as text fails to parse here."""
    if pa.types.is_date32(node.type):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(node.type) else node.type


def _value(column: pa.Array, node: Column) -> pa.Array | None:
    """The values in the type of their column; None if a time is out of range."""
    rule = rule_of(node.field)
    if rule is None or rule[0] == "number":
        return column
    if rule[0] == "any_date":
        return column.cast(node.type) if _lies_in(column, FIRST // DAY, LAST // DAY) else None
    micros = pc.multiply_checked(column, _MICROS[rule[0]])
    return micros.cast(node.type) if _lies_in(micros, FIRST * SECOND, LAST * SECOND) else None


def _lies_in(column: pa.Array, first: int, last: int) -> bool:
    bounds = pc.min_max(column)
    return not bounds["min"].is_valid or (bounds["min"].as_py() >= first and bounds["max"].as_py() <= last)


def _deepest(text: bytes, ends: Int32s) -> int:
    """An upper bound for the nesting depth of a message: its number of objects and lists. Messages start at `ends`."""
    # `{` and `[` are the only two bytes that become `{` with the ASCII case bit (0x20) set.
    opens = np.flatnonzero((np.frombuffer(text, np.uint8) | 0x20) == ord("{"))
    return int(np.diff(np.searchsorted(opens, ends)).max())


def _longest_name(fields: pa.Schema | pa.DataType) -> int:
    """The length of the longest field name at any depth."""
    inner = fields if isinstance(fields, pa.Schema | pa.StructType) else inner_fields(fields)
    nested = (_longest_name(field.type) for field in inner if pa.types.is_nested(field.type))
    return max([0, *(len(field.name) for field in inner), *nested])


def _text(messages: pa.Array) -> tuple[bytes, Int32s]:
    """The messages as lines, and the offsets at which each begins and the last one ends."""
    lines = pc.binary_join_element_wise(messages.cast(pa.binary()), b"", b"\n")
    _, offsets, text = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return bytes(memoryview(text)[ends[0] : ends[-1]]), ends - ends[0]


def _whole(parsed: pa.Table, name: str) -> pa.Array:
    return parsed.column(name).combine_chunks()


def _all(found: pa.Array) -> bool:
    return pc.all(found, skip_nulls=False).as_py() is True
