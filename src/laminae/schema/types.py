"""The table of Spark SQL types and the Arrow types that stand for them, in both directions.

Arrow types come from here by SQL name, and print back as SQL; the text grammar around them is `laminae.sql`.
Nothing here reads a schema, compares types or knows about column ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import InvalidSchema
from laminae.schema.identifiers import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

COMMENT_KEY = b"comment"
"""Field metadata key of a struct field's COMMENT; Spark's own Arrow schemas use the same."""

# The struct that pyspark itself sends for a variant; the mark on the second field tells it from a user's struct.
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


@dataclass(frozen=True, slots=True)
class SqlType:
    """One row: the name that is printed, other names that are read, and how many numbers may follow in parentheses."""

    name: str
    aliases: tuple[str, ...]
    arrow: pa.DataType
    max_arguments: int = 0


TYPES: tuple[SqlType, ...] = (
    SqlType("BOOLEAN", (), pa.bool_()),
    SqlType("TINYINT", ("BYTE",), pa.int8()),
    SqlType("SMALLINT", ("SHORT",), pa.int16()),
    SqlType("INT", ("INTEGER",), pa.int32()),
    SqlType("BIGINT", ("LONG",), pa.int64()),
    SqlType("FLOAT", ("REAL",), pa.float32()),
    SqlType("DOUBLE", (), pa.float64()),
    SqlType("DECIMAL", ("DEC", "NUMERIC"), pa.decimal128(10, 0), 2),
    SqlType("STRING", ("TEXT",), pa.string()),
    # The length is read and not enforced: Arrow has no such type, and a longer value is no reason to lose a record.
    SqlType("VARCHAR", ("CHAR", "CHARACTER"), pa.string(), 1),
    SqlType("BINARY", ("BYTES",), pa.binary()),
    SqlType("DATE", (), pa.date32()),
    # Nanoseconds because pyspark's Arrow mapping of TIME has them; the precision is read and not enforced.
    SqlType("TIME", (), pa.time64("ns"), 1),
    SqlType("TIMESTAMP", ("TIMESTAMP_LTZ",), pa.timestamp("us", tz="UTC")),
    SqlType("TIMESTAMP_NTZ", (), pa.timestamp("us")),
    SqlType(
        "INTERVAL DAY TO SECOND",
        (
            "INTERVAL DAY",
            "INTERVAL DAY TO HOUR",
            "INTERVAL DAY TO MINUTE",
            "INTERVAL HOUR",
            "INTERVAL HOUR TO MINUTE",
            "INTERVAL HOUR TO SECOND",
            "INTERVAL MINUTE",
            "INTERVAL MINUTE TO SECOND",
            "INTERVAL SECOND",
        ),
        pa.duration("us"),
    ),
    SqlType("INTERVAL YEAR TO MONTH", ("INTERVAL YEAR", "INTERVAL MONTH"), pa.month_day_nano_interval()),
    SqlType("VOID", (), pa.null()),
    SqlType("VARIANT", (), VARIANT),
)

# Names of other systems that people type by habit; read by nothing, only suggested.
FOREIGN_NAMES = {
    "BLOB": "BINARY",
    "BYTEA": "BINARY",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
    "FLOAT8": "DOUBLE",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "JSON": "VARIANT",
    "JSONB": "VARIANT",
    "NUMBER": "DECIMAL",
    "TIMESTAMPTZ": "TIMESTAMP",
    "UTF8": "STRING",
    "UUID": "STRING",
}

# Words that Spark or an ANSI parser may take for the start of a clause; everything else is printed bare.
_RESERVED_WORDS = (
    "ALL AND ANTI AS BETWEEN BY CASE CAST CREATE CROSS CURRENT_DATE CURRENT_TIMESTAMP DISTINCT DROP ELSE END EXCEPT "
    "EXISTS FALSE FOR FROM FULL GROUP HAVING IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT "
    "MINUS NATURAL NOT NULL ON OR ORDER OUTER PRIMARY RIGHT SELECT SEMI SET TABLE THEN TO TRUE UNION UNIQUE USING "
    "VALUES WATERMARK WHEN WHERE WITH"
)
RESERVED = frozenset(_RESERVED_WORDS.split())

MAX_PRECISION = 38
MAX_TIME_PRECISION = 6

_BY_NAME = {name: row for row in TYPES for name in (row.name, *row.aliases)}
_BY_ARROW = {row.arrow: row.name for row in reversed(TYPES) if row.arrow is not VARIANT}
_CONSTRUCTORS = ("ARRAY", "MAP", "STRUCT")
_PLAIN_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def arrow_type(name: str, arguments: tuple[int, ...] = ()) -> pa.DataType:
    """The Arrow type of a SQL type without element types, such as `arrow_type("DECIMAL", (10, 2))`."""
    row = _BY_NAME.get(name.upper())
    if row is None:
        raise InvalidSchema(path=name, problem=f"there is no type {name}{_suggestion(name.upper())}")
    if len(arguments) > row.max_arguments:
        takes = f"at most {row.max_arguments}" if row.max_arguments else "no"
        raise InvalidSchema(path=name, problem=f"{row.name} takes {takes} number in parentheses")
    if not arguments:
        return row.arrow
    if row.name == "DECIMAL":
        return _decimal(*arguments)
    if row.name == "TIME" and arguments[0] > MAX_TIME_PRECISION:
        raise InvalidSchema(path=name, problem=f"the precision of TIME is 0 to {MAX_TIME_PRECISION}")
    return row.arrow


def is_type_name(name: str) -> bool:
    return name.upper() in _BY_NAME


def array_type(element: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element))


def map_type(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.map_(key, pa.field("value", value))


def struct_type(fields: Iterable[pa.Field]) -> pa.DataType:
    return pa.struct(list(fields))


def struct_field(name: str, type_: pa.DataType, nullable: bool = True, comment: str | None = None) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata=None if comment is None else {COMMENT_KEY: comment})


def sql_type(type_: pa.DataType) -> str:
    """The SQL text of an Arrow type; a type that Spark has no name for prints as Arrow writes it."""
    if pa.types.is_struct(type_):
        if is_variant(type_):
            return "VARIANT"
        return f"STRUCT<{', '.join(_field_sql(field) for field in type_)}>"
    if pa.types.is_list(type_):
        return f"ARRAY<{sql_type(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"MAP<{sql_type(type_.key_type)}, {sql_type(type_.item_type)}>"
    return _leaf_sql(type_)


def quote_identifier(name: str) -> str:
    """The name as SQL reads it back: bare if it is a plain word that is not reserved, else in backticks."""
    if _PLAIN_IDENTIFIER.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return quoted(name)


def quote_string(value: str) -> str:
    """A string literal as Spark reads it: backslash escapes, quotes doubled."""
    return f"'{value.translate(_ESCAPES)}'"


_ESCAPES = str.maketrans({"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"})


# Only leaves are cached: Arrow calls two structs equal whose field metadata differs, and comments are metadata.
@lru_cache(maxsize=512)
def _leaf_sql(type_: pa.DataType) -> str:
    if pa.types.is_decimal128(type_) and type_.scale >= 0:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _BY_ARROW.get(type_) or str(type_)


def _field_sql(field: pa.Field) -> str:
    not_null = "" if field.nullable else " NOT NULL"
    comment = (field.metadata or {}).get(COMMENT_KEY)
    said = "" if comment is None else f" COMMENT {quote_string(comment.decode(errors='replace'))}"
    return f"{quote_identifier(field.name)}: {sql_type(field.type)}{not_null}{said}"


def is_variant(type_: pa.DataType) -> bool:
    """Whether this struct is the pair of fields that stands for a VARIANT; its mark is metadata, which `==` ignores."""
    return bool(type_ == VARIANT) and b"variant" in (type_.field(1).metadata or {})


def _decimal(precision: int, scale: int = 0) -> pa.DataType:
    if not 1 <= precision <= MAX_PRECISION:
        raise InvalidSchema(path="DECIMAL", problem=f"the precision of DECIMAL is 1 to {MAX_PRECISION}")
    if not 0 <= scale <= precision:
        raise InvalidSchema(path="DECIMAL", problem=f"the scale of DECIMAL is 0 to its precision ({precision})")
    return pa.decimal128(precision, scale)


def _suggestion(name: str) -> str:
    close = [FOREIGN_NAMES[name]] if name in FOREIGN_NAMES else get_close_matches(name, (*_BY_NAME, *_CONSTRUCTORS), 1)
    return f", did you mean {close[0]}?" if close else ""
