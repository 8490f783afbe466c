"""Identifies the files that Spark fails to read. The driver checks them one by one, only after a job has failed.

If no file has a problem that this module can see, the files are not the cause and the job's own error is reported.
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
    """What is wrong with the content of the file; None: no problem found."""
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
        # An error of the operating system (missing file, no permission) may be transient; broken content is not.
        if getattr(problem, "errno", None) is not None:
            return None
        return f"it cannot be read: {str(problem).splitlines()[0] if str(problem) else type(problem).__name__}"
    return None


def shown_path(path: str) -> str:
    """A path as valid UTF-8 text, whatever its bytes are."""
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
