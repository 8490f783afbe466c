"""The directories of a home that hold the output of epochs. A path is used once, made durable, then committed.

Files that no committed epoch references do not exist for readers: a crash leaves orphans, never partial results.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from laminae import durable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILES = "*.parquet"


@dataclass(frozen=True, slots=True)
class Storage:
    """The files of one home on a file system that this process can reach by path."""

    home: Path

    def checkpoint(self, source_id: int) -> str:
        return str(self.home / "sources" / str(source_id) / "checkpoint")

    def new_segment(self, source_id: int, kind: str) -> str:
        """A unique path below the home, so that attempts never write to the same directory."""
        return f"sources/{source_id}/{kind}/{uuid.uuid4().hex}"

    def path(self, segment: str) -> str:
        return str(self.home / segment)

    def rows(self, segment: str) -> int:
        """The row count of a segment from its Parquet footers, which is exact even if tasks were retried."""
        return sum(pq.read_metadata(file).num_rows for file in self._files(segment))

    def remove(self, segment: str) -> None:
        """Remove the segment of an abandoned attempt."""
        shutil.rmtree(self.home / segment, ignore_errors=True)

    def sync(self, segment: str) -> None:
        """Fsync a segment: its files, its directory, and the directories above it, which hold the entries."""
        durable.sync_tree(self.home / segment, _FILES, self.home)

    def _files(self, segment: str) -> Iterator[Path]:
        return (self.home / segment).glob(_FILES)
