"""Infers the schema that CSV records require, from a bounded sample on the driver: new header columns, wider integers.

There are few types on purpose: BIGINT, DOUBLE, BOOLEAN, and STRING for everything else. Numbers with leading zeros are
text.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.identifiers import collation_key, column_name_problem
from laminae.spark.formats.csv.shape import header_names
from laminae.spark.formats.parquet.footers import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
FRACTION = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
TRUTH = re.compile(r"true|false", re.IGNORECASE)
LONGEST_NUMBER = 20


def grown_by_records(
    current: pa.Schema, header: bytes, records: Iterable[bytes], delimiter: str, aliases: Sequence[tuple[str, str]]
) -> pa.Schema:
    """`current`, extended by what the records under this header require; a former name never becomes a new column."""
    former_names = [former for former, _ in aliases]
    names = header_names(header, delimiter, {*current.names, *former_names})
    if isinstance(names, Refused):
        return current
    columns = _columns(names, records, delimiter)
    live = {former: name for former, name in aliases if name not in names}
    known = {collation_key(name) for name in (*current.names, *former_names)}
    by_name = {live.get(name, name): column for name, column in zip(names, columns, strict=True)}
    fields = [_grown(field, by_name.get(field.name, [])) for field in current]
    for name, values in by_name.items():
        if collation_key(name) not in known and column_name_problem(name) is None and values:
            fields.append(pa.field(name, _type_of(values)))
    return pa.schema(fields, metadata=current.metadata)


def _columns(names: Sequence[str], records: Iterable[bytes], delimiter: str) -> list[list[str]]:
    """The non-empty values of each column; ragged and unreadable records are skipped."""
    columns: list[list[str]] = [[] for _ in names]
    for record in records:
        try:
            rows = list(csv.reader(io.StringIO(record.decode(), newline=""), delimiter=delimiter, strict=False))
        except (UnicodeDecodeError, csv.Error):
            continue
        if len(rows) == 1 and len(rows[0]) == len(names):
            for column, value in zip(columns, rows[0], strict=True):
                if value.strip():
                    column.append(value.strip())
    return columns


def _grown(field: pa.Field, values: Sequence[str]) -> pa.Field:
    if not pa.types.is_integer(field.type):
        return field
    numbers = [value for value in values if FRACTION.fullmatch(value)]
    if any(not WHOLE.fullmatch(value) for value in numbers):
        return field.with_type(pa.float64())
    is_wider = not all(_fits(value, field.type.bit_width) for value in numbers)
    return field.with_type(pa.int64()) if is_wider and all(_fits(value, 64) for value in numbers) else field


def _type_of(values: Sequence[str]) -> pa.DataType:
    if all(WHOLE.fullmatch(value) for value in values):
        return pa.int64() if all(_fits(value, 64) for value in values) else pa.string()
    if all(FRACTION.fullmatch(value) for value in values):
        return pa.float64()
    return pa.bool_() if all(TRUTH.fullmatch(value) for value in values) else pa.string()


def _fits(number: str, bits: int) -> bool:
    # Python refuses to parse very long numbers; none of them fits.
    limit = 2 ** (bits - 1)
    return len(number) <= LONGEST_NUMBER and -limit <= int(number) < limit
