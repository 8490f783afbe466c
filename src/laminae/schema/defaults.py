"""Typed defaults: a literal is checked against its column's type once and stored as JSON text in field metadata.

Arrow has no slot for a default. JSON has fewer types than SQL, so DECIMAL, DATE, TIMESTAMP and BINARY are strings.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laminae.errors import InvalidDefault
from laminae.schema.column import dotted
from laminae.schema.types import sql_type

if TYPE_CHECKING:
    from laminae.schema.column import Column, Columns, Path

# Values of every type pass through here, hence Any: each converter checks its value.
Convert = Callable[[Any, pa.DataType], Any]

PROBLEMS = (TypeError, ValueError, KeyError, OverflowError, InvalidOperation, RecursionError, pa.ArrowException)
FLOAT_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode_default(value: object, arrow: pa.DataType, path: str) -> str:
    """`value` as the JSON text stored for a column of this type, or `InvalidDefault`."""
    try:
        text = json.dumps(_to_json(value, arrow), ensure_ascii=False, separators=(",", ":"))
        _scalar(text, arrow)
    except PROBLEMS as problem:
        raise InvalidDefault(default=repr(value), path=path, type=sql_type(arrow), problem=str(problem)) from None
    return text


def check_defaults(columns: Columns, path: Path = ()) -> None:
    """Raise `InvalidDefault` for the first default, at or below these columns, that is no value of its column."""
    for node in columns:
        here = (*path, node.name)
        # An initial default is a value of the type that the column had first, and of every wider one.
        for default in {node.default, node.initial_default} - {None}:
            scalar = default_scalar(default, node.type, dotted(here))
            if default == node.default and _has_forbidden_null(scalar.as_py(), node):
                kind = sql_type(node.type)
                raise InvalidDefault(default=default, path=dotted(here), type=kind, problem="NULL in a NOT NULL column")
        check_defaults(node.children, here)


def _has_forbidden_null(value: Any, node: Column) -> bool:
    if value is None:
        return not node.nullable
    if node.kind == "struct":
        return any(_has_forbidden_null(value[child.name], child) for child in node.children)
    if node.kind in ("map", "sorted_map"):
        return any(_has_forbidden_null(item, node.children[1]) for _, item in value)
    return bool(node.children) and any(_has_forbidden_null(item, node.children[0]) for item in value)


def default_scalar(text: str | None, arrow: pa.DataType, path: str) -> pa.Scalar:
    """The Arrow scalar that fills a column whose default is `text`; NULL when there is none."""
    if text is None:
        return pa.scalar(None, arrow)
    try:
        return _scalar(text, arrow)
    except PROBLEMS as problem:
        raise InvalidDefault(default=text, path=path, type=sql_type(arrow), problem=str(problem)) from None


@lru_cache(maxsize=4096)
def _scalar(text: str, arrow: pa.DataType) -> pa.Scalar:
    value = _from_json(json.loads(text), arrow)
    scalar = pa.scalar(value, arrow)
    if isinstance(value, float) and math.isfinite(value) and not math.isfinite(scalar.as_py()):
        raise ValueError("the number is too large")
    return scalar


def _to_json(value: Any, arrow: pa.DataType) -> Any:
    return None if value is None else _form(arrow)[1](value, arrow)


def _from_json(value: Any, arrow: pa.DataType) -> Any:
    return None if value is None else _form(arrow)[2](value, arrow)


def _exactly(*kinds: type) -> Convert:
    def check(value: Any, _: pa.DataType) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(f"expected {' or '.join(k.__name__ for k in kinds)}, found {type(value).__name__}")
        return value

    return check


_bool, _int, _str, _bytes = _exactly(bool), _exactly(int), _exactly(str), _exactly(bytes)
_time, _timedelta, _list, _dict = _exactly(time), _exactly(timedelta), _exactly(list, tuple), _exactly(dict)
_exact, _real, _number = _exactly(int, Decimal), _exactly(int, float), _exactly(int, Decimal, float)
_digits = _exactly(str, int)


def _float_to_json(value: Any, arrow: pa.DataType) -> Any:
    number = float(_number(value, arrow))
    if isinstance(value, int) and int(pa.scalar(number, arrow).as_py()) != value:
        raise ValueError("the type cannot hold this whole number exactly")
    return number if math.isfinite(number) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(number)]


def _float_from_json(value: Any, arrow: pa.DataType) -> Any:
    return FLOAT_NAMES[value] if isinstance(value, str) else float(_real(value, arrow))


def _decimal_from_json(value: Any, arrow: pa.DataType) -> Any:
    number = Decimal(_digits(value, arrow))
    if not number.is_finite():
        raise ValueError("a decimal must be finite")
    return number


def _date_to_json(value: Any, _: pa.DataType) -> Any:
    if isinstance(value, datetime) or not isinstance(value, date | str):
        raise TypeError(f"expected a date, found {type(value).__name__}")
    return (date.fromisoformat(value) if isinstance(value, str) else value).isoformat()


def _timestamp_to_json(value: Any, arrow: pa.DataType) -> Any:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise TypeError(f"expected a timestamp, found {type(value).__name__}")
    if arrow.tz is None:
        if moment.tzinfo is not None:
            raise TypeError("a timestamp without time zone cannot have a default with one")
        return moment.isoformat()
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _time_to_json(value: Any, arrow: pa.DataType) -> Any:
    return (time.fromisoformat(value) if isinstance(value, str) else _time(value, arrow)).isoformat()


def _fields(convert: Convert) -> Convert:
    def struct(value: Any, arrow: pa.DataType) -> Any:
        values = _dict(value, arrow)
        if unknown := values.keys() - {field.name for field in arrow}:
            raise ValueError(f"no field {', '.join(sorted(unknown))}")
        return {field.name: convert(values.get(field.name), field.type) for field in arrow}

    return struct


def _entries(convert: Convert) -> Convert:
    """Maps are lists of pairs in JSON, since their keys need not be strings."""

    def pairs(value: Any, arrow: pa.DataType) -> Any:
        entries = value.items() if isinstance(value, dict) else _list(value, arrow)
        return [(convert(key, arrow.key_type), convert(item, arrow.item_type)) for key, item in entries]

    return pairs


def _elements(convert: Convert) -> Convert:
    return lambda value, arrow: [convert(item, arrow.value_type) for item in _list(value, arrow)]


def _form(arrow: pa.DataType) -> tuple[Callable[[pa.DataType], bool], Convert, Convert]:
    for form in FORMS:
        if form[0](arrow):
            return form
    raise TypeError("a column of this type cannot have a default")


def _is_text(t: pa.DataType) -> bool:
    return bool(pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t))


def _is_bytes(t: pa.DataType) -> bool:
    return bool(pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t))


def _is_list(t: pa.DataType) -> bool:
    return bool(pa.types.is_list(t) or pa.types.is_large_list(t))


# How each type family is converted to JSON and back; the first matching test decides.
FORMS: tuple[tuple[Callable[[pa.DataType], bool], Convert, Convert], ...] = (
    (pa.types.is_boolean, _bool, _bool),
    (pa.types.is_integer, _int, _int),
    (pa.types.is_floating, _float_to_json, _float_from_json),
    (pa.types.is_decimal, lambda v, t: str(Decimal(_exact(v, t))), _decimal_from_json),
    (_is_text, _str, _str),
    (
        _is_bytes,
        lambda v, t: base64.b64encode(_bytes(v, t)).decode(),
        lambda v, t: base64.b64decode(_str(v, t), validate=True),
    ),
    (pa.types.is_date, _date_to_json, lambda v, t: date.fromisoformat(_str(v, t))),
    (pa.types.is_timestamp, _timestamp_to_json, lambda v, t: datetime.fromisoformat(_str(v, t))),
    (pa.types.is_time, _time_to_json, lambda v, t: time.fromisoformat(_str(v, t))),
    (
        pa.types.is_duration,
        lambda v, t: _timedelta(v, t) // timedelta(microseconds=1),
        lambda v, t: timedelta(microseconds=_int(v, t)),
    ),
    (pa.types.is_struct, _fields(_to_json), _fields(_from_json)),
    (pa.types.is_map, _entries(_to_json), _entries(_from_json)),
    (_is_list, _elements(_to_json), _elements(_from_json)),
)
