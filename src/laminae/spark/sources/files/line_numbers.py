"""The offset of a dead letter from a text file: the number of the line at which its record begins, counted from 0.

Spark cannot number the lines of a file that several tasks read. Only the files that have dead letters are read again
here, by the driver, before the epoch is committed; so an epoch without dead letters pays nothing.
"""

from __future__ import annotations

import mmap
from collections import defaultdict, deque
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.engine.source_spec import SourceSpec

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def number_lines(segment: str) -> None:
    """Fill in the offsets in a segment of dead letters that is written but not committed yet."""
    for file in Path(segment).glob("*.parquet"):
        letters = pq.read_table(file, coerce_int96_timestamp_unit="us")
        offsets = line_numbers(letters["partition"].to_pylist(), letters["value"].to_pylist())
        index = letters.schema.get_field_index("offset")
        # The records of a source with a key already have offsets, assigned by Spark to order them: these are kept.
        filled = pc.coalesce(letters["offset"].combine_chunks(), pa.array(offsets, pa.int64()))
        numbered = letters.set_column(index, letters.schema.field(index), filled)
        # INT96, as Spark writes timestamps; it would read any other encoding as a timestamp without time zone.
        pq.write_table(numbered, file, use_deprecated_int96_timestamps=True)
        # Hadoop's file system would verify the file against the checksum of what Spark wrote.
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def position_text(spec: SourceSpec, partition: str | None, offset: int | None, record: bytes | None) -> str:
    """The position of a record (file or partition, and line or offset) as text for a person who looks for it."""
    if offset is None and spec.numbers_lines:
        (offset,) = line_numbers([partition], [record])
    words = (partition, None if offset is None else f"at {offset}")
    return " ".join(word for word in words if word) or "the epoch"


def line_numbers(paths: list[str | None], records: list[bytes | None]) -> list[int | None]:
    """The line number of each record; None if its file no longer has it.

    Equal records of one file get the numbers of their lines in order: the first dead letter gets the first line.
    """
    numbers: list[int | None] = [None] * len(records)
    by_path: dict[str, list[int]] = defaultdict(list)
    for index, (path, record) in enumerate(zip(paths, records, strict=True)):
        if path is not None and record is not None:
            by_path[path].append(index)
    for path, indexes in by_path.items():
        waiting: dict[bytes, deque[int]] = defaultdict(deque)
        for index in indexes:
            waiting[_first_line(records[index] or b"")].append(index)
        _search(Path(path), waiting, records, numbers)
    return numbers


def _search(
    path: Path, waiting: dict[bytes, deque[int]], records: list[bytes | None], numbers: list[int | None]
) -> None:
    """Read the file once, stopping when every record is found."""
    if not path.is_file() or not path.stat().st_size:
        return
    left = sum(map(len, waiting.values()))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for number, (start, line) in enumerate(_lines(content)):
            candidates = waiting.get(line)
            for index in candidates or ():
                if _begins_with(content, start, records[index] or b""):
                    numbers[index] = number
                    waiting[line].remove(index)
                    left -= 1
                    break
            if not left:
                return


def _lines(content: mmap.mmap) -> Iterator[tuple[int, bytes]]:
    """The start position of each line, and the line without its terminator; a lone carriage return ends no line."""
    start = len(BYTE_ORDER_MARK) if content[:3] == BYTE_ORDER_MARK else 0
    content.seek(start)
    while whole := content.readline():
        yield start, whole.removesuffix(b"\n").removesuffix(b"\r")
        start += len(whole)


def _begins_with(content: mmap.mmap, start: int, record: bytes) -> bool:
    """Whether the record begins at `start`; carriage returns are ignored, as those at line ends may have been lost."""
    plain = record.replace(b"\r", b"")
    returns = record.count(b"\n") + record.count(b"\r") + 1
    return content[start : start + len(record) + returns].replace(b"\r", b"").startswith(plain)


def _first_line(record: bytes) -> bytes:
    return record.partition(b"\n")[0].removesuffix(b"\r")
