"""Parses JSON lines to Arrow, many at once. Returns None for text that needs the exact decoder.

The result must be that of the single-record decoder, or nothing. Whatever the two might read differently (missing,
extra or duplicate keys, a number that is not of its type, text around a document, bytes that are not UTF-8) is left to
that decoder, which reports the reason. No Spark here.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from laminae.schema.column import columns_of
from laminae.schema.nesting import is_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.schema.column import Column

BLOCK_BYTES = 1 << 20
# Jackson rejects numbers with more digits (its StreamReadConstraints, which Spark does not change).
MOST_DIGITS = 1_000
INSTANT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?Z$"
DAY = r"^\d{4}-\d\d-\d\d$"
_DIGITS = re.compile(rb"[0-9.eE+-]{%d}" % (MOST_DIGITS - 10))
_NUMBERS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_int8,
    pa.types.is_int16,
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_float64,
    pa.types.is_string,
)


@dataclass(frozen=True)
class LineReader:
    """Reads documents whose fields are exactly the columns of `schema`. See `line_reader`."""

    schema: pa.Schema

    @cached_property
    def _asked(self) -> pa.Schema:
        return pa.schema([pa.field(field.name, _asked(field.type)) for field in self.schema])

    @cached_property
    def _complete(self) -> tuple[str, ...]:
        """Columns in which a NULL needs the exact decoder: the field may be absent and have a default."""
        nodes = columns_of(self.schema)
        return tuple(node.name for node in nodes if not node.nullable or node.default is not None)

    def read(self, text: bytes) -> pa.Table | None:
        """One row per line, or None if the text needs the exact decoder. The last newline is optional."""
        try:
            parsed = parsed_lines(text, self._asked, "error")
            if parsed is None or any(parsed[name].null_count for name in self._complete):
                return None
            return parsed.cast(self._target) if all(map(_are_plain, parsed.columns, self.schema.types)) else None
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # The single-record decoder reads the same text and gives each bad record its reason.
            return None

    @cached_property
    def _target(self) -> pa.Schema:
        return pa.schema([pa.field(field.name, field.type) for field in self.schema])


def parsed_lines(text: bytes, asked: pa.Schema, unexpected: str) -> pa.Table | None:
    """One row per line; None if there may be text between documents or an unusual number. Raises Arrow's exceptions.

    `unexpected` is Arrow's behavior for fields that are not in `asked`.
    """
    lines = _lines(text)
    if lines is None:
        return None
    parsed = arrow_json.read_json(
        io.BytesIO(text),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
        parse_options=arrow_json.ParseOptions(explicit_schema=asked, unexpected_field_behavior=unexpected),
    )
    if parsed.num_rows != lines or not all(_is_finite(column) for column in parsed.columns):
        return None
    parsed.validate(full=True)
    return parsed


def line_reader(schema: pa.Schema) -> LineReader | None:
    """A reader for these columns; None if Arrow and `from_json` read a type differently."""
    return LineReader(schema) if schema.names and all(map(_is_plain, columns_of(schema))) else None


def _is_plain(node: Column) -> bool:
    if node.kind == "struct" or is_list(node.type):
        inner = node.children
        return bool(inner) and all(child.nullable and child.default is None and _is_plain(child) for child in inner)
    return any(test(node.type) for test in _NUMBERS) or _pattern(node.type) is not None


def _pattern(kind: pa.DataType) -> str | None:
    """The only accepted text format of a type."""
    if pa.types.is_timestamp(kind) and kind.tz == "UTC" and kind.unit == "us":
        return INSTANT
    return DAY if pa.types.is_date32(kind) else None


def _asked(kind: pa.DataType) -> pa.DataType:
    """The type to parse: instants and dates as text, whose format is checked first."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _asked(field.type)) for field in kind])
    if is_list(kind):
        return pa.list_(_asked(kind.value_type))
    return pa.string() if _pattern(kind) is not None else kind


def _lines(text: bytes) -> int | None:
    """The number of lines if each can only be one object from its first to its last byte; else None.

    The sequence `}`, newline, `{` occurs nowhere inside a document, so no document spans several lines.
    """
    end = len(text) - text.endswith(b"\n")
    if not text.startswith(b"{") or text[end - 1 : end] != b"}":
        return None
    letters = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero(letters[:end] == ord("\n"))
    if (letters[breaks - 1] != ord("}")).any() or (letters[breaks + 1] != ord("{")).any() or b"\0" in text:
        return None
    longest = int(np.diff(breaks, prepend=-1, append=end).max())
    if longest >= MOST_DIGITS and _DIGITS.search(text) is not None:
        return None
    return len(breaks) + 1


def _is_finite(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether every float is finite and not minus zero: too large numbers are rejected, `-0` is read differently."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if pa.types.is_struct(chunk.type) or is_list(chunk.type):
            if not all(map(_is_finite, chunk.flatten() if pa.types.is_struct(chunk.type) else [chunk.flatten()])):
                return False
        elif pa.types.is_float64(chunk.type):
            values = chunk.drop_null().to_numpy(zero_copy_only=False)
            if not np.isfinite(values).all() or (np.signbit(values) & (values == 0)).any():
                return False
    return True


def _are_plain(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> bool:
    """Whether the texts of instants and dates all have the accepted format."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if pa.types.is_struct(kind):
            if not all(map(_are_plain, chunk.flatten(), [field.type for field in kind])):
                return False
        elif is_list(kind):
            if not _are_plain(chunk.flatten(), kind.value_type):
                return False
        elif (pattern := _pattern(kind)) is not None and not _all(pc.match_substring_regex(chunk, pattern)):
            return False
    return True


def _all(found: pa.Array) -> bool:
    return pc.all(found, skip_nulls=True, min_count=0).as_py() is not False
