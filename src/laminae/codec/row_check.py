"""Which JSON documents cannot be rows of a schema, and why: the check of `insert`, before an epoch reads them.

It reports only what is certain to become a dead letter. The decoder decides: it may reject a document that passes here,
but never accepts one that is reported here. No Spark.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from laminae.codec.json_lines import line_reader
from laminae.schema.column import columns_of, dotted
from laminae.schema.identifiers import collation_key
from laminae.schema.nesting import is_list
from laminae.schema.types import is_variant, sql_type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from laminae.schema.column import Column, Path

DATE = re.compile(r"\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}\s*", re.ASCII)
TIMESTAMP = re.compile(r"\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{1,2}.*)?\s*", re.ASCII)
TIME = re.compile(r"\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{0,6}0*)?)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that will become a dead letter: its number, counted from 0, the column, and the reason."""

    row: int
    column: str
    reason: str


class Inserted(int):
    """The number of rows that an insert has stored. `refused` are those that will become dead letters, and why.

    Of a large insert only the first `checked` rows were checked.
    """

    refused: tuple[RefusedRow, ...]
    checked: int

    def __new__(cls, rows: int, refused: tuple[RefusedRow, ...] = (), checked: int | None = None) -> Self:
        inserted = super().__new__(cls, rows)
        inserted.refused, inserted.checked = refused, rows if checked is None else checked
        return inserted

    def __repr__(self) -> str:
        if not self.refused:
            return int.__repr__(self)
        first = self.refused[0]
        summary = f"{len(self.refused)} of them will be dead letters, the first is row {first.row}"
        return f"{int.__repr__(self)} rows, {summary}: {first.column}: {first.reason}"


def refused_rows(
    documents: Sequence[bytes],
    schema: pa.Schema,
    takes_numbers: bool = False,
    aliases: Callable[[], Collection[str]] = tuple,
) -> tuple[RefusedRow, ...]:
    """The documents that cannot be rows. `takes_numbers`: a number may be a timestamp. `aliases`: former names."""
    # Arrow parses plain rows in one pass, a hundred times as fast as one by one.
    reader = line_reader(schema)
    if not documents or (reader is not None and reader.read(b"\n".join(documents)) is not None):
        return ()
    columns, former_names = columns_of(schema), aliases()
    refused = []
    for number, document in enumerate(documents):
        row = json.loads(document, parse_float=Decimal)
        problem = next(_problems(row, columns, takes_numbers, former_names), None)
        if problem is not None:
            refused.append(RefusedRow(number, *problem))
    return tuple(refused)


def _problems(
    row: dict[str, object], columns: Sequence[Column], takes_numbers: bool, aliases: Collection[str]
) -> Iterator[tuple[str, str]]:
    names = {node.name for node in columns}
    folded = {collation_key(name): name for name in names}
    for name, value in row.items():
        is_known = name in names or name in aliases
        if not is_known and collation_key(name) in folded and value not in (None, {}, []):
            yield name, f"it differs only in case from the column {folded[collation_key(name)]}"
    has_strangers = any(name not in names for name in row)
    for node in columns:
        if node.name in row:
            yield from _value_problems(row[node.name], node, (node.name,), takes_numbers)
        elif node.is_required and not has_strangers:
            yield node.name, "it is missing, and NOT NULL without a default"


def _value_problems(value: object, node: Column, path: Path, takes_numbers: bool) -> Iterator[tuple[str, str]]:
    kind, here = node.type, dotted(path)
    if value is None:
        if not node.nullable:
            yield here, "it is NULL in a NOT NULL column"
    elif is_variant(kind):
        return
    elif node.kind == "struct" and isinstance(value, dict):
        for child in node.children:
            if child.name in value:
                yield from _value_problems(value[child.name], child, (*path, child.name), takes_numbers)
    elif is_list(kind) and isinstance(value, list):
        for item in value:
            yield from _value_problems(item, node.children[0], (*path, "element"), takes_numbers)
    elif pa.types.is_map(kind) and isinstance(value, dict):
        for item in value.values():
            yield from _value_problems(item, node.children[1], (*path, "value"), takes_numbers)
    elif not _is_value(value, kind, takes_numbers):
        yield here, f"{_shown(value)} is not a value of type {sql_type(kind)}"


def _is_value(value: object, kind: pa.DataType, takes_numbers: bool) -> bool:
    if pa.types.is_timestamp(kind) and takes_numbers and isinstance(value, int):
        return True
    test = next((test for is_of, test in TESTS if is_of(kind)), None)
    return not bool(pa.types.is_nested(kind)) if test is None else test(value, kind)


def _is_whole(value: object, kind: pa.DataType) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    bits = kind.bit_width
    least, most = (0, 2**bits) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return bool(least <= value < most)


def _is_number(value: object, _: pa.DataType) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_decimal(value: object, kind: pa.DataType) -> bool:
    if isinstance(value, str):
        # The decoder accepts a number written as text.
        return True
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    number = Decimal(value)
    exponent = number.normalize().as_tuple().exponent
    digits = int(kind.precision - kind.scale)
    return isinstance(exponent, int) and -exponent <= kind.scale and number.adjusted() < max(digits, 1)


def _is_base64(value: object, _: pa.DataType) -> bool:
    try:
        return isinstance(value, str) and base64.b64decode("".join(value.split()), validate=True) is not None
    except (binascii.Error, ValueError):
        return False


def _matches(pattern: re.Pattern[str]) -> Callable[[object, pa.DataType], bool]:
    return lambda value, _: isinstance(value, str) and pattern.fullmatch(value) is not None


# Other types are not checked here: STRING accepts any JSON value.
TESTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], bool]], ...] = (
    (pa.types.is_boolean, lambda value, _: isinstance(value, bool)),
    (pa.types.is_integer, _is_whole),
    (pa.types.is_floating, _is_number),
    (pa.types.is_decimal, _is_decimal),
    (pa.types.is_date, _matches(DATE)),
    (pa.types.is_timestamp, _matches(TIMESTAMP)),
    (pa.types.is_time, _matches(TIME)),
    (pa.types.is_binary, _is_base64),
)


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}..."
