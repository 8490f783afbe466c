"""A durable, append-only, numbered list in a log's directory: one JSON line per item, in chunk files.

Subclasses define what an item is. Kept light on purpose, like `log_head`: it imports no Spark.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from laminae import durable
from laminae.spark.sources.log_head import Head, LogDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Numbered(Protocol):
    @property
    def item(self) -> int: ...


Entry = TypeVar("Entry", bound=Numbered)

# An epoch reads the chunks of its range, so its cost does not grow with the list.
CHUNK = 1000


class EntryList(ABC, Generic[Entry]):
    """Entries 0 to n - 1, where n is the item count of the log's head."""

    def __init__(self, directory: LogDirectory) -> None:
        self._directory = directory

    @abstractmethod
    def _described(self, entry: Entry) -> Mapping[str, object]:
        """The fields of an entry that its JSON line stores."""

    @abstractmethod
    def _read(self, item: int, line: dict[str, Any]) -> Entry:
        """The entry that a line describes; KeyError, TypeError or ValueError if the line is not valid."""

    def entries(self, items: range) -> Iterator[Entry]:
        for chunk in range(items.start // CHUNK, -(-items.stop // CHUNK)):
            first = chunk * CHUNK
            lines = self._lines(first)
            for item in range(max(first, items.start), min(first + CHUNK, items.stop)):
                yield self._entry(lines, item)

    def _append(self, head: Head, entries: Sequence[Entry]) -> None:
        """Append entries, whose numbers continue from the head, and advance the head."""
        extent = head.extent
        for chunk, group in groupby(entries, lambda entry: entry.item // CHUNK):
            text = b"".join(json.dumps(self._described(entry)).encode() + b"\n" for entry in group)
            position = extent if chunk == head.items // CHUNK and head.items % CHUNK else 0
            self._write(self._file(chunk * CHUNK), position, text)
            extent = position + len(text)
        if entries:
            durable.sync(self._directory.path)
            self._directory.publish(Head(head.items + len(entries), extent))

    def _write(self, file: str, position: int, text: bytes) -> None:
        # Anything past this position was written by a writer that died before it advanced the head.
        with durable.overwrite(file, position) as out:
            out.write(text)

    def _lines(self, first: int) -> list[bytes]:
        try:
            with open(self._file(first), "rb") as lines:
                return lines.readlines()
        except OSError as error:
            raise self._directory.damaged(self._file(first), error.strerror or str(error)) from error

    def _entry(self, lines: list[bytes], item: int) -> Entry:
        try:
            return self._read(item, json.loads(lines[item % CHUNK]))
        except (IndexError, ValueError, KeyError, TypeError) as error:
            file = self._file(item // CHUNK * CHUNK)
            raise self._directory.damaged(file, f"line {item % CHUNK + 1} is not a file: {error}") from error

    def _file(self, first: int) -> str:
        return os.path.join(self._directory.path, f"{first:012}.jsonl")
