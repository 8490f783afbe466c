"""Checks whether a file has changed since it was listed: by its size and times, and by its content if the times differ.

A file that was only touched or copied has other times but the same content, and stays readable. The digest of a large
file covers a sample of its blocks, because listing would otherwise read all of it. So for a large file a different
modification time also counts as a change.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from laminae.errors import SourceFileChanged

if TYPE_CHECKING:
    from laminae.spark.sources.files.listing import ListedFile

# Reading and hashing this much takes about 20 ms.
LARGEST = 16 << 20
# The blocks sampled from a larger file: evenly spaced, the first and the last included, 4 MB in total.
BLOCKS, BLOCK = 64, 64 << 10
SAMPLED = "blocks:"
NOT_TAKEN = ""
"""The digest of a large file in lists that were written before blocks were sampled."""
_DIGEST_BYTES = 16

APPENDED = "Move what was appended to a new file (tail -c +{next} {file}), then run truncate -s {size} {file}"
REPLACED = (
    "Restore the original file with its modification time, and write new records to a new file. If the original is "
    "lost, drop the source and create it again"
)


def digest_of(path: str, size: int) -> str:
    """The digest of the first `size` bytes; if larger than `LARGEST`, of sampled blocks, with the prefix `SAMPLED`."""
    with open(path, "rb") as file:
        if size <= LARGEST:
            return hashlib.blake2b(file.read(size), digest_size=_DIGEST_BYTES).hexdigest()
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for number in range(BLOCKS):
            file.seek((size - BLOCK) * number // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
        return f"{SAMPLED}{digest.hexdigest()}"


def check_unchanged(entry: ListedFile, source: str) -> None:
    """Raises SourceFileChanged if its records may differ from those when it was listed, OSError if it is gone."""
    status = os.stat(entry.path)
    if status.st_size == entry.size:
        if entry.digest is None or (status.st_mtime_ns // 1000, status.st_ctime_ns) == (entry.modified, entry.changed):
            return
        if entry.digest != NOT_TAKEN and digest_of(entry.path, entry.size) != entry.digest:
            raise _changed(entry, source, "it has the same size but different content")
        is_compared_in_full = entry.digest != NOT_TAKEN and not entry.digest.startswith(SAMPLED)
        if is_compared_in_full or status.st_mtime_ns // 1000 == entry.modified:
            return
        raise _changed(entry, source, "it was modified, and is too large to be compared in full")
    problem = f"it has {status.st_size} bytes, and had {entry.size} when it was found"
    if status.st_size > entry.size and (not entry.digest or digest_of(entry.path, entry.size) == entry.digest):
        advice = APPENDED.format(next=entry.size + 1, size=entry.size, file=entry.path)
        raise _changed(entry, source, f"{problem}; appended content is not read", advice)
    raise _changed(entry, source, problem)


def _changed(entry: ListedFile, source: str, problem: str, advice: str = REPLACED) -> SourceFileChanged:
    return SourceFileChanged(source=source, location=entry.path, problem=problem, advice=advice)
