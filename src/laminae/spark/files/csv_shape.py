"""What a CSV file looks like: its header, and whether a line of it is always a record. Read on the driver, in chunks.

Quotes are as RFC 4180 has them: a field in quotes may hold delimiters, newlines and doubled quotes.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from laminae.spark.files.footers import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

BOM = b"\xef\xbb\xbf"
CHUNK = 4_000_000
# A header longer than this is no header, but a file of one line.
LONGEST_HEADER = 1_000_000
# Such a file is one value in one task, of which the JVM holds some seven copies while it is split.
LONGEST_WHOLE = 64_000_000
_QUOTE, _NEWLINE = ord('"'), ord("\n")


@dataclass(frozen=True, slots=True)
class Shape:
    """`header` is the first record as bytes, without BOM and line end. `has_long_records`: some record spans lines."""

    header: bytes
    has_long_records: bool


def record_pattern(delimiter: str) -> str:
    """One record and its end, for Java and Python alike. A quote opens only at the beginning of a field.

    Possessive throughout: Java's matcher then loops, where it would recurse once for each repetition.
    """
    stop = rf"[^{re.escape(delimiter)}\n]*+"
    field = rf'(?:"[^"]*+(?:""[^"]*+)*+"{stop}|{stop})'
    return rf"({field}(?:{re.escape(delimiter)}{field})*+)(?:\n|\z)"


def header_names(header: bytes, delimiter: str) -> tuple[str, ...] | Refused:
    """The columns that a header names, or why it cannot be one."""
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError:
        return Refused("the header of the file is not valid UTF-8")
    if "\r" in text:
        return Refused("the header of the file has a carriage return: lines end with a newline")
    try:
        names = tuple(name.strip() for name in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)))
    except csv.Error as error:
        return Refused(f"the header of the file cannot be read: {error}")
    if not all(names):
        return Refused(f"the header of the file has no name for column {names.index('') + 1}")
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.casefold())
        if other is not None:
            told = "twice" if other == name else f"beside {other}, which differs only in case"
            return Refused(f"the header of the file has {name} {told}")
        seen[name.casefold()] = name
    return names


# Size and time are part of the key: a file that was mended is another file.
@lru_cache(maxsize=10_000)
def shape(path: str, size: int, modified: int, delimiter: str) -> Shape | Refused | None:
    """None for a file without a record: it has no header either."""
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
    """The whole records of a file's beginning, header first, blank lines left out."""
    # A character for each byte: the pattern looks at ASCII alone, and no byte is lost. Python spells \z as \Z.
    pattern = record_pattern(delimiter.encode().decode("latin-1")).replace(r"\z", r"\Z")
    text = beginning.removeprefix(BOM).decode("latin-1")
    found = (match[1].removesuffix("\r").encode("latin-1") for match in re.finditer(pattern, text))
    return [record for record in found if record]


def _header(path: str, delimiter: str) -> bytes | None:
    with open(path, "rb") as file:
        return next(iter(records_in(file.read(LONGEST_HEADER), delimiter)), None)


def _has_odd_line(path: str) -> bool:
    """Whether a line has an odd number of quotes: only then can a record go on in the next one."""
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
    found = np.frombuffer(lines, np.uint8)
    quotes, ends = np.flatnonzero(found == _QUOTE), np.flatnonzero(found == _NEWLINE)
    return bool((np.diff(np.searchsorted(quotes, ends), prepend=0) % 2).any())
