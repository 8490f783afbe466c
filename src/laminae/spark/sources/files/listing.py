"""The durable, numbered list of the files of a directory. A file is stored in the list, once, before it is reported.

Of each listed file it reads what is needed to detect later changes. Kept light on purpose, like `log_head`: no Spark.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from laminae.errors import SourceFileChanged, SourceUnavailable, SubdirectoryNotRead
from laminae.spark.sources.files.fingerprint import check_unchanged, digest_of
from laminae.spark.sources.item_log import EntryList

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from laminae.errors import LaminaeError
    from laminae.spark.sources.log_head import Head, LogDirectory

# Checking a file takes some microseconds, and the driver checks every few seconds.
MOST_CHECKED = 2000
IGNORED_BEGINNINGS = (".", "_")
# The last one is Hadoop's suffix for an unfinished copy; Spark's readers silently skip such files.
IGNORED_ENDINGS = (".tmp", "._COPYING_")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as it was when it was listed. `modified` is in microseconds since 1970."""

    item: int
    path: str
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class ListedFile(FileEntry):
    """`changed` is the inode change time (ctime) in nanoseconds, which programs cannot set. `digest` is a hash of the
    content: None in lists written before there was a digest, empty for large files in lists written before blocks were
    sampled.
    """

    changed: int = 0
    digest: str | None = None


class FileList(EntryList[ListedFile]):
    """Lists a directory (or glob pattern) and remembers every path that was ever seen there."""

    def __init__(self, directory: LogDirectory, path: str) -> None:
        super().__init__(directory)
        self._path = path
        self._known: dict[str, ListedFile] = {}
        self._loaded = 0
        self._checked: int | None = None

    def items(self, seen: int) -> int:
        self._load(self._directory.items(seen))
        new_paths = list(dict.fromkeys(path for path in self._paths() if path not in self._known))
        if new_paths:
            with self._directory.writing() as head:
                # Another process may have stored them meanwhile.
                self._load(head.items)
                self._remember(head, sorted(path for path in new_paths if path not in self._known))
        return self._loaded

    def _paths(self) -> Iterator[str]:
        """Regular files only: those in the directory, or those that the pattern matches and those in directories that
        it matches.
        """
        try:
            if os.path.isdir(self._path) or not glob.has_magic(self._path) or self._was_a_directory():
                yield from _files_in(self._path)
                return
            # A pattern that matches nothing is an empty source; a pattern whose directory is gone is an error.
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

    def problem(self) -> LaminaeError | None:
        """What would silently not be read: a file that was changed since it was listed, or a sub-directory.

        The first call checks all files; later calls check up to `MOST_CHECKED`, in turn. A missing file is no problem:
        it was read and moved away.
        """
        self._load(self._directory.items(self._loaded))
        entries = list(self._known.values())
        first, count = (0, len(entries)) if self._checked is None else (self._checked, min(MOST_CHECKED, len(entries)))
        self._checked = (first + count) % max(1, len(entries))
        for entry in (entries[(first + step) % len(entries)] for step in range(count)):
            try:
                check_unchanged(entry, self._directory.source)
            except SourceFileChanged as changed:
                # The next call begins with this file, until it is restored.
                self._checked = entries.index(entry)
                return changed
            except OSError:
                continue
        return self._subdirectory()

    def _subdirectory(self) -> LaminaeError | None:
        if not os.path.isdir(self._path):
            return None
        with os.scandir(self._path) as entries:
            names = sorted(entry.name for entry in entries if _is_wanted(entry.name) and entry.is_dir())
        if not names:
            return None
        location, pattern = os.path.join(self._path, names[0]), os.path.join(glob.escape(self._path), "**")
        return SubdirectoryNotRead(source=self._directory.source, location=location, pattern=pattern)

    def _was_a_directory(self) -> bool:
        """Whether files were listed in a directory with this name: then it is no pattern, and the directory is gone."""
        return any(os.path.dirname(path) == self._path for path in self._known)

    def _load(self, items: int) -> None:
        self._known.update((entry.path, entry) for entry in self.entries(range(self._loaded, items)))
        self._loaded = items

    def _remember(self, head: Head, paths: list[str]) -> None:
        entries = _found(paths, head.items)
        self._append(head, entries)
        self._known.update((entry.path, entry) for entry in entries)
        self._loaded = head.items + len(entries)

    def _described(self, entry: ListedFile) -> Mapping[str, object]:
        described = {"path": entry.path, "size": entry.size, "modified": entry.modified}
        return described if entry.digest is None else {**described, "changed": entry.changed, "digest": entry.digest}

    def _read(self, item: int, line: dict[str, Any]) -> ListedFile:
        digest = line.get("digest")
        known = None if digest is None else str(digest)
        changed = int(line.get("changed", 0))
        return ListedFile(item, str(line["path"]), int(line["size"]), int(line["modified"]), changed, known)


def _files_in(directory: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if _is_wanted(entry.name) and entry.is_file():
                yield entry.path


def _is_wanted(name: str) -> bool:
    return not name.startswith(IGNORED_BEGINNINGS) and not name.endswith(IGNORED_ENDINGS)


def _fixed_part(pattern: str) -> str:
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def _found(paths: list[str], first: int) -> list[ListedFile]:
    """The files, ordered by (modification time, path); files that have disappeared again are left out."""
    files = sorted(filter(None, map(_as_it_is, paths)), key=lambda entry: (entry.modified, entry.path))
    return [replace(entry, item=first + index) for index, entry in enumerate(files)]


def _as_it_is(path: str) -> ListedFile | None:
    try:
        status = os.stat(path)
        digest = digest_of(path, status.st_size)
    except FileNotFoundError:
        return None
    except OSError:
        # Reading its records reports what is wrong.
        digest = None
    return ListedFile(0, path, status.st_size, status.st_mtime_ns // 1000, status.st_ctime_ns, digest)
