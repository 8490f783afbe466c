"""Directories of a home that hold what epochs write. A path is claimed once, made durable, and named by a commit.

What no committed epoch names does not exist: a crash leaves orphans, never half a result.
"""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_synced: set[Path] = set()


@dataclass(frozen=True, slots=True)
class Storage:
    """The files of one home on a file system that this process can reach by path."""

    home: Path

    def checkpoint(self, source_id: int) -> str:
        return str(self.home / "sources" / str(source_id) / "checkpoint")

    def new_segment(self, source_id: int, kind: str) -> str:
        """A path below the home that nobody has used: attempts never meet."""
        return f"sources/{source_id}/{kind}/{uuid.uuid4().hex}"

    def path(self, segment: str) -> str:
        return str(self.home / segment)

    def rows(self, segment: str) -> int:
        """Rows of a segment by its Parquet footers: exact however often a task was retried."""
        return sum(pq.read_metadata(file).num_rows for file in self._files(segment))

    def remove(self, segment: str) -> None:
        """Of an attempt that was given up."""
        shutil.rmtree(self.home / segment, ignore_errors=True)

    def sync(self, segment: str) -> None:
        """Make a segment durable: its files, its directory, and the entry of the directory in its parent."""
        directory = self.home / segment
        for file in self._files(segment):
            _fsync(file)
        for folder in (directory, directory.parent):
            _fsync(folder)
        # The directories above are made with a source's first segment; their entries must last as well.
        for folder in directory.parent.parents:
            if folder in _synced or not folder.is_relative_to(self.home):
                break
            _fsync(folder)
            _synced.add(folder)

    def _files(self, segment: str) -> Iterator[Path]:
        return (self.home / segment).glob("*.parquet")


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
