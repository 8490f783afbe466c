"""The mapping from Arrow types to PostgreSQL types, and the encoding of values in the text format of COPY.

A table that the user created may have other types: PostgreSQL parses the same text as those types, or reports an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laminae.errors import NotAvailable
from laminae.schema.nesting import is_list
from laminae.schema.types import VARIANT, sql_type
from laminae.zset.debezium.json_text import value_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TEXT = pa.large_string()
NULL = "\\N"
# The backslash must come first, because the other replacements add backslashes.
ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def _cast(array: pa.Array) -> pa.Array:
    return array.cast(TEXT)


def _escaped(array: pa.Array) -> pa.Array:
    text = array.cast(TEXT)
    for plain, written in ESCAPES:
        text = pc.replace_substring(text, plain, written)
    return text


def _hexadecimal(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else f"\\\\x{value.hex()}" for value in array.to_pylist()], TEXT)


def _json(array: pa.Array) -> pa.Array:
    return _escaped(value_texts(array))


def _microseconds(array: pa.Array) -> pa.Array:
    counts = array.cast(pa.duration("us")).cast(pa.int64()).cast(TEXT)
    return pc.binary_join_element_wise(counts, pa.scalar(" microseconds", TEXT), pa.scalar("", TEXT))


def _months(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else f"{value.months} months" for value in array.to_pylist()], TEXT)


@dataclass(frozen=True, slots=True)
class PostgresType:
    """One entry: which Arrow types it applies to, the PostgreSQL type name, and how values are encoded for COPY."""

    holds: Callable[[pa.DataType], bool]
    name: str
    texts: Callable[[pa.Array], pa.Array] = _cast


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    variable = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return bool(variable or pa.types.is_fixed_size_binary(kind))


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or pa.types.is_map(kind) or is_list(kind))


# The first match wins. Unsigned integers get the next wider type that can hold them.
TYPES: tuple[PostgresType, ...] = (
    PostgresType(pa.types.is_boolean, "boolean"),
    PostgresType(lambda t: t in (pa.int8(), pa.int16(), pa.uint8()), "smallint"),
    PostgresType(lambda t: t in (pa.int32(), pa.uint16()), "integer"),
    PostgresType(lambda t: t in (pa.int64(), pa.uint32()), "bigint"),
    PostgresType(pa.types.is_uint64, "numeric(20)"),
    PostgresType(lambda t: t in (pa.float16(), pa.float32()), "real"),
    PostgresType(pa.types.is_float64, "double precision"),
    PostgresType(pa.types.is_decimal, "numeric({0.precision}, {0.scale})"),
    PostgresType(_is_text, "text", _escaped),
    PostgresType(_is_bytes, "bytea", _hexadecimal),
    PostgresType(pa.types.is_date, "date"),
    PostgresType(pa.types.is_time, "time"),
    PostgresType(lambda t: pa.types.is_timestamp(t) and t.tz is not None, "timestamptz"),
    PostgresType(pa.types.is_timestamp, "timestamp"),
    PostgresType(pa.types.is_duration, "interval", _microseconds),
    PostgresType(pa.types.is_interval, "interval", _months),
    PostgresType(pa.types.is_null, "text"),
    PostgresType(_is_nested, "jsonb", _json),
)


def type_name(field: pa.Field, sink: str) -> str:
    """The PostgreSQL type that a column is created with."""
    return _row(field, sink).name.format(field.type)


def value_text(field: pa.Field, value: pa.Scalar, sink: str) -> str:
    """A non-NULL value as text that PostgreSQL parses as the column's type, without the escapes of COPY."""
    array = pa.array([value.as_py()], field.type)
    texts = _row(field, sink).texts
    if texts is _hexadecimal:
        return f"\\x{array[0].as_py().hex()}"
    plain = value_texts(array) if texts is _json else _cast(array) if texts is _escaped else texts(array)
    return str(plain[0].as_py())


def copied(batch: pa.RecordBatch, names: Sequence[str], sink: str) -> pa.Buffer:
    """The named columns in the text format of COPY, one line per row."""
    texts = [_row(batch.schema.field(name), sink).texts(batch.column(name)) for name in names]
    lines = pc.binary_join_element_wise(*texts, pa.scalar("\t", TEXT), null_handling="replace", null_replacement=NULL)
    ended = pc.binary_join_element_wise(lines, pa.scalar("\n", TEXT), pa.scalar("", TEXT))
    # The array was just computed, so its values are contiguous in the data buffer and start at offset 0.
    data = ended.buffers()[2]
    return pa.py_buffer(b"") if data is None else data.slice(0, pc.sum(pc.binary_length(ended)).as_py() or 0)


def _row(field: pa.Field, sink: str) -> PostgresType:
    postgres_type = next((row for row in TYPES if row.holds(field.type)), None)
    if postgres_type is None or field.type == VARIANT:
        raise NotAvailable(
            feature=f"Column {field.name} in sink {sink}",
            problem=f"a {sql_type(field.type)} has no form in PostgreSQL",
            advice="Cast the column to STRING in a view, or leave it out.",
        )
    return postgres_type
