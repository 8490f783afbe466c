"""Files that Spark fails to read, found out one by one. The driver looks only when a job over them has failed.

A file that this finds nothing wrong with is not to blame: what failed the job is told as it is.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 1 << 20
NO_TEXT_NAME = "its name is not UTF-8 text"


def why_broken(path: str, is_parquet: bool) -> str | None:
    """What is wrong with the file; None: nothing that can be seen from here."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return NO_TEXT_NAME
    look = _parquet if is_parquet else next((look for end, look in COMPRESSED.items() if path.endswith(end)), None)
    if look is None:
        return None
    try:
        look(path)
    except (OSError, EOFError, zlib.error, pa.ArrowException) as problem:
        # What the system says of a file (it is gone, or nobody may read it) may pass; its content stays as it is.
        if getattr(problem, "errno", None) is not None:
            return None
        return f"it cannot be read: {str(problem).splitlines()[0] if str(problem) else type(problem).__name__}"
    return None


def shown_path(path: str) -> str:
    """A path as text that can be written down, whatever its bytes are."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _parquet(path: str) -> None:
    with pq.ParquetFile(path) as file:
        for _ in file.iter_batches():
            pass


def _gzip(path: str) -> None:
    with gzip.open(path) as file:
        while file.read(PIECE):
            pass


def _bzip2(path: str) -> None:
    with bz2.open(path) as file:
        while file.read(PIECE):
            pass


def _deflate(path: str) -> None:
    pieces = zlib.decompressobj()
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            pieces.decompress(piece)
    if not pieces.eof:
        raise EOFError("it ends before its end mark")


def _zstandard(path: str) -> None:
    with pa.CompressedInputStream(pa.OSFile(path), "zstd") as file:
        while file.read(PIECE):
            pass


COMPRESSED: dict[str, Callable[[str], None]] = {
    ".gz": _gzip,
    ".bz2": _bzip2,
    ".deflate": _deflate,
    ".zst": _zstandard,
}
