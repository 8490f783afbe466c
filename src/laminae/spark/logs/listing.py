"""The durable, numbered list of the files of a directory. A file is written down before it is reported, once.

Light on purpose, like `head`. It never opens the files it lists.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from laminae.errors import SourceUnavailable
from laminae.spark.logs.entries import EntryList

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from laminae.spark.logs.head import Head, LogDirectory

IGNORED_BEGINNINGS = (".", "_")
# The last one is Hadoop's mark of an unfinished copy, which Spark's readers leave out without a word.
IGNORED_ENDINGS = (".tmp", "._COPYING_")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as it was when it was found. `modified` is in microseconds since 1970."""

    item: int
    path: str
    size: int
    modified: int


class FileList(EntryList[FileEntry]):
    """Looks at a directory (or glob pattern) and remembers each path that was ever there."""

    def __init__(self, directory: LogDirectory, path: str) -> None:
        super().__init__(directory)
        self._path = path
        self._known: set[str] = set()
        self._loaded = 0

    def items(self, seen: int) -> int:
        self._load(self._directory.items(seen))
        found = [path for path in self._paths() if path not in self._known]
        if found:
            with self._directory.writing() as head:
                # Another process may have written them down meanwhile.
                self._load(head.items)
                self._remember(head, sorted(path for path in found if path not in self._known))
        return self._loaded

    def _paths(self) -> Iterator[str]:
        """Regular files alone: of the directory, or what the pattern matches and what is in directories it matches."""
        try:
            if os.path.isdir(self._path) or not glob.has_magic(self._path) or self._was_a_directory():
                yield from _files_in(self._path)
                return
            # A pattern that matches nothing is an empty source, one whose directory is gone is not.
            os.scandir(_fixed_part(self._path)).close()
            for match in glob.iglob(self._path, recursive=True):
                if os.path.isdir(match):
                    yield from _files_in(match)
                elif _is_wanted(os.path.basename(match)) and os.path.isfile(match):
                    yield match
        except OSError as error:
            problem = error.strerror or str(error)
            raise SourceUnavailable(
                source=self._directory.source, location=error.filename or self._path, problem=problem
            ) from error

    def _was_a_directory(self) -> bool:
        """Whether files were found in what looks like a pattern: then it is the name of a directory that is gone."""
        return any(os.path.dirname(path) == self._path for path in self._known)

    def _load(self, items: int) -> None:
        self._known.update(entry.path for entry in self.entries(range(self._loaded, items)))
        self._loaded = items

    def _remember(self, head: Head, paths: list[str]) -> None:
        entries = _found(paths, head.items)
        self._append(head, entries)
        self._known.update(entry.path for entry in entries)
        self._loaded = head.items + len(entries)

    def _described(self, entry: FileEntry) -> Mapping[str, object]:
        return {"path": entry.path, "size": entry.size, "modified": entry.modified}

    def _read(self, item: int, line: dict[str, Any]) -> FileEntry:
        return FileEntry(item, str(line["path"]), int(line["size"]), int(line["modified"]))


def _files_in(directory: str) -> Iterator[str]:
    with os.scandir(directory) as found:
        for entry in found:
            if _is_wanted(entry.name) and entry.is_file():
                yield entry.path


def _is_wanted(name: str) -> bool:
    return not name.startswith(IGNORED_BEGINNINGS) and not name.endswith(IGNORED_ENDINGS)


def _fixed_part(pattern: str) -> str:
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def _found(paths: list[str], first: int) -> list[FileEntry]:
    """In the order (modification time, path); a file that is gone again is left out."""
    found: list[tuple[int, str, int]] = []
    for path in paths:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        found.append((status.st_mtime_ns // 1000, path, status.st_size))
    found.sort()
    return [FileEntry(first + index, path, size, modified) for index, (modified, path, size) in enumerate(found)]
