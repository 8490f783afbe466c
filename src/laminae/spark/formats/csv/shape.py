"""The shape of a CSV file: its header, and whether a record may span lines. Read on the driver, in chunks.

Quoting follows RFC 4180: a quoted field may contain delimiters, newlines and doubled quotes.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from laminae.schema.identifiers import collation_key
from laminae.spark.formats.json.arrow_lines import COMPRESSED
from laminae.spark.formats.parquet.footers import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

COMPRESSED_ADVICE = "CSV files must not be compressed: decompress it into the directory under another name"
BOM = b"\xef\xbb\xbf"
CHUNK = 4_000_000
# A longer header is rejected: it is most likely a file of one line.
LONGEST_HEADER = 1_000_000
# A file whose records span lines is read as one value in one task; the JVM holds about seven copies while splitting it.
LONGEST_WHOLE = 64_000_000
_QUOTE, _NEWLINE = ord('"'), ord("\n")


@dataclass(frozen=True, slots=True)
class Shape:
    """`header` is the first record as bytes, without BOM and line end. `has_long_records`: a record may span lines."""

    header: bytes
    has_long_records: bool


def record_pattern(delimiter: str) -> str:
    """A regex for one record and its end, for both Java and Python. A quote opens only at the beginning of a field.

    All quantifiers are possessive: Java's matcher then loops instead of recursing once for each repetition.
    """
    stop = rf"[^{re.escape(delimiter)}\n]*+"
    field = rf'(?:"[^"]*+(?:""[^"]*+)*+"{stop}|{stop})'
    return rf"({field}(?:{re.escape(delimiter)}{field})*+)(?:\n|\z)"


def quoted_pattern(delimiter: str) -> str:
    """A Java regex for a whole record in which each field that begins with a quote also ends with one.

    Possessive for the same reason as `record_pattern`.
    """
    mark = re.escape(delimiter)
    field = rf'(?:"[^"]*+(?:""[^"]*+)*+"|(?:[^"{mark}][^{mark}]*+)?+)'
    return rf"\A{field}(?:{mark}{field})*+\z"


def header_names(header: bytes, delimiter: str, known: Collection[str]) -> tuple[str, ...] | Refused:
    """The column names in a header, or why it is not a valid header.

    Spaces around a name are removed, as in `id, amount`, unless a known column has the name with them.
    """
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError:
        return Refused("the header of the file is not valid UTF-8")
    if "\r" in text:
        return Refused("the header of the file has a carriage return: lines end with a newline")
    try:
        written = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        return Refused(f"the header of the file cannot be read: {error}")
    names = tuple(name if name in known else name.strip() for name in written)
    if not all(names):
        return Refused(f"the header of the file has no name for column {names.index('') + 1}")
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(collation_key(name))
        if other is not None:
            conflict = "twice" if other == name else f"beside {other}, which differs only in case"
            return Refused(f"the header of the file has {name} {conflict}")
        seen[collation_key(name)] = name
    return names


# Size and modification time are part of the cache key: a repaired file is a different file.
@lru_cache(maxsize=10_000)
def shape(path: str, size: int, modified: int, delimiter: str) -> Shape | Refused | None:
    """The shape of a file, or why it is rejected; None for a file without a record, which has no header either."""
    if path.casefold().endswith(COMPRESSED):
        return Refused(f"the file is compressed, and {COMPRESSED_ADVICE}")
    try:
        header = _header(path, delimiter)
        if header is None:
            return None
        has_long = _NEWLINE in header or _has_odd_line(path)
    except OSError as error:
        return Refused(f"the file cannot be read: {error.strerror or error}")
    if len(header) >= LONGEST_HEADER:
        return Refused(f"the header of the file is longer than {LONGEST_HEADER} bytes")
    if has_long and size > LONGEST_WHOLE:
        return Refused(f"a record of the file spans lines, and it has more than {LONGEST_WHOLE} bytes")
    return Shape(header, has_long)


def records_in(beginning: bytes, delimiter: str) -> list[bytes]:
    """The complete records at the beginning of a file, header first, without blank lines."""
    # One character for each byte: the pattern tests only ASCII, and no byte is lost. Python spells \z as \Z.
    pattern = record_pattern(delimiter.encode().decode("latin-1")).replace(r"\z", r"\Z")
    text = beginning.removeprefix(BOM).decode("latin-1")
    records = (match[1].removesuffix("\r").encode("latin-1") for match in re.finditer(pattern, text))
    return [record for record in records if record]


def _header(path: str, delimiter: str) -> bytes | None:
    with open(path, "rb") as file:
        return next(iter(records_in(file.read(LONGEST_HEADER), delimiter)), None)


def _has_odd_line(path: str) -> bool:
    """Whether a line has an odd number of quotes: only then can a record continue on the next line."""
    return any(_is_odd(lines) for lines in _whole_lines(path))


def _whole_lines(path: str) -> Iterator[bytes]:
    rest = b""
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            end = chunk.rfind(b"\n") + 1
            if end:
                yield rest + chunk[:end]
                rest = chunk[end:]
            else:
                rest += chunk
    if rest:
        yield rest + b"\n"


def _is_odd(lines: bytes) -> bool:
    if _QUOTE not in lines:
        return False
    byte_values = np.frombuffer(lines, np.uint8)
    quotes, ends = np.flatnonzero(byte_values == _QUOTE), np.flatnonzero(byte_values == _NEWLINE)
    return bool((np.diff(np.searchsorted(quotes, ends), prepend=0) % 2).any())
