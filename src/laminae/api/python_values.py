"""Arrow columns as Python values. Values that Python's own types cannot hold become text.

`datetime` covers the years 1 to 9999, and `timedelta` holds fewer days than Arrow's durations. A value outside becomes
the text that Spark's CAST to STRING gives, as in DuckDB's `fetchall`, so that one row does not make the result
unreadable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_SECONDS = 86_400
# The calendar repeats after 400 years; day 0 of its cycle is 1 March of the year 0.
_CYCLE_DAYS, _CYCLE_YEARS, _EPOCH_DAY = 146_097, 400, 719_468
# What pyarrow and the libraries below it raise for a value that Python cannot hold.
_NO_FORM = (OverflowError, ValueError, pa.ArrowException)


def python_values(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """The values of a column, None for NULL."""
    try:
        values: list[object] = column.to_pylist()
    except _NO_FORM:
        return list(_values(column))
    return values


def python_rows(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [python_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """As pyarrow converts it; a column with a value that pandas cannot hold gets Python values."""
    try:
        frame: pd.DataFrame = table.to_pandas()
    except _NO_FORM:
        import pandas as pd

        frame = pd.concat([_series(column) for column in table.columns], axis=1)
        frame.columns = pd.Index(table.column_names)
    return frame


def valid_text(table: pa.Table) -> pa.Table:
    """The table with U+FFFD for bytes that are not UTF-8, which Arrow readers do not expect in text.

    Spark does not validate the bytes of a binary value that it casts to STRING.
    """
    columns = [_with_valid_text(column) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema) if columns else table


def _series(column: pa.ChunkedArray) -> pd.Series[Any]:
    import pandas as pd

    try:
        series: pd.Series[Any] = column.to_pandas()
    except _NO_FORM:
        series = pd.Series(python_values(column), dtype=object)
    return series


def _values(column: pa.Array | pa.ChunkedArray) -> Iterator[object]:
    if isinstance(column, pa.ChunkedArray):
        for chunk in column.chunks:
            yield from python_values(chunk)
        return
    kind = column.type
    valid = column.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        fields = [python_values(column.field(index)) for index in range(kind.num_fields)]
        names = [field.name for field in kind]
        for index, is_valid in enumerate(valid):
            yield {name: values[index] for name, values in zip(names, fields, strict=True)} if is_valid else None
    elif pa.types.is_map(kind):
        for index, is_valid in enumerate(valid):
            entries = column[index].values if is_valid else None
            yield (
                None
                if entries is None
                else [
                    (key, value)
                    for key, value in zip(python_values(entries.field(0)), python_values(entries.field(1)), strict=True)
                ]
            )
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        for index, is_valid in enumerate(valid):
            yield python_values(column[index].values) if is_valid else None
    else:
        for scalar in column:
            yield _value(scalar)


def _value(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except _NO_FORM:
        return _text(scalar)


def _text(scalar: pa.Scalar) -> str:
    kind = scalar.type
    if pa.types.is_date(kind):
        return _day(scalar.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).as_py() // _day_length(kind))
    number: int = scalar.cast(pa.int64()).as_py()
    if pa.types.is_timestamp(kind):
        seconds, fraction = divmod(number, _UNITS[kind.unit])
        days, second = divmod(seconds, _DAY_SECONDS)
        parts = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        digits = f".{fraction:0{len(str(_UNITS[kind.unit])) - 1}}".rstrip("0") if fraction else ""
        return f"{_day(days)} {parts}{digits}{'+00:00' if kind.tz else ''}"
    return f"{number} {getattr(kind, 'unit', '')}".rstrip()


def _day_length(kind: pa.DataType) -> int:
    return 1 if pa.types.is_date32(kind) else _DAY_SECONDS * 1_000


def _day(days: int) -> str:
    """A day counted from 1970-01-01, in the ISO 8601 calendar, as Spark formats it."""
    cycle, day = divmod(days + _EPOCH_DAY, _CYCLE_DAYS)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day_of_month = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += cycle * _CYCLE_YEARS + (month <= 2)
    sign = "+" if year > 9_999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day_of_month:02}"


def _with_valid_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return pa.chunked_array([_repaired(chunk) for chunk in column.chunks], column.type)
    return column


def _repaired(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        raw = array.view(pa.binary() if pa.types.is_string(kind) else pa.large_binary())
        return pa.array([None if value is None else value.decode(errors="replace") for value in raw.to_pylist()], kind)
    if rebuild := _REBUILD.get(_shape(kind)):
        return rebuild(array)
    return array


def _shape(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return "struct"
    if pa.types.is_map(kind):
        return "map"
    return "list" if pa.types.is_list(kind) else ""


def _rebuilt_struct(array: pa.StructArray) -> pa.Array:
    fields = [_repaired(array.field(index)) for index in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=array.is_null())


def _rebuilt_list(array: pa.ListArray) -> pa.Array:
    return pa.ListArray.from_arrays(_offsets(array), _repaired(array.values), type=array.type)


def _rebuilt_map(array: pa.MapArray) -> pa.Array:
    return pa.MapArray.from_arrays(_offsets(array), _repaired(array.keys), _repaired(array.items), type=array.type)


def _offsets(array: pa.ListArray | pa.MapArray) -> pa.Array:
    """The offset of each value; NULL for a NULL value, as `from_arrays` expects it."""
    starts = array.offsets
    is_null = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(is_null, pa.scalar(None, starts.type), starts)


_REBUILD: dict[str, Callable[[Any], pa.Array]] = {
    "struct": _rebuilt_struct,
    "list": _rebuilt_list,
    "map": _rebuilt_map,
}
