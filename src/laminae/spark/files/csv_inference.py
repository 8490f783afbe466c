"""The schema that CSV records ask for, from a bounded sample on the driver: new columns of the header, wider integers.

The types are few on purpose: whole numbers, fractions, true and false, and text for all else. A zero in front is text.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.widening import is_safe_widening
from laminae.spark.files.csv_shape import header_names
from laminae.spark.files.footers import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)")
FRACTION = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?(?<=\d)")
TRUTH = re.compile(r"true|false", re.IGNORECASE)
LONGEST_NUMBER = 20


def grown_by_records(
    current: pa.Schema, header: bytes, records: Iterable[bytes], delimiter: str, aliases: Sequence[tuple[str, str]]
) -> pa.Schema:
    """`current` grown to what the records under this header hold; a former name is never a new column."""
    names = header_names(header, delimiter)
    if isinstance(names, Refused):
        return current
    columns = _columns(names, records, delimiter)
    live = {former: name for former, name in aliases if name not in names}
    known = {name.casefold() for name in (*current.names, *(former for former, _ in aliases))}
    by_name = {live.get(name, name): column for name, column in zip(names, columns, strict=True)}
    fields = [_grown(field, by_name.get(field.name, [])) for field in current]
    for name, values in by_name.items():
        if name.casefold() not in known and values:
            fields.append(pa.field(name, _type_of(values)))
    return pa.schema(fields, metadata=current.metadata)


def _columns(names: Sequence[str], records: Iterable[bytes], delimiter: str) -> list[list[str]]:
    """The values of each column that are not empty; ragged and unreadable records have none."""
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
        # A change that cannot be would be refused together with the new columns of the same records.
        return field.with_type(pa.float64()) if is_safe_widening(field.type, pa.float64()) else field
    is_wider = not all(_fits(value, field.type.bit_width) for value in numbers)
    return field.with_type(pa.int64()) if is_wider and all(_fits(value, 64) for value in numbers) else field


def _type_of(values: Sequence[str]) -> pa.DataType:
    if all(WHOLE.fullmatch(value) for value in values):
        return pa.int64() if all(_fits(value, 64) for value in values) else pa.string()
    if all(FRACTION.fullmatch(value) for value in values):
        return pa.float64()
    return pa.bool_() if all(TRUTH.fullmatch(value) for value in values) else pa.string()


def _fits(number: str, bits: int) -> bool:
    # Python refuses to read very long numbers; none of them fits.
    limit = 2 ** (bits - 1)
    return len(number) <= LONGEST_NUMBER and -limit <= int(number) < limit
