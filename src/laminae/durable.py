"""Durable files: every fsync of the package. What a function here has returned survives a crash of the machine.

An `OSError` raised here names its file, also where the operating system does not (a full disk is found by the fsync of
an open file). It must know no directory layout: callers choose the paths and the `LaminaeError`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, BinaryIO

from laminae.errors import HomeUnwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_synced_parents: set[Path] = set()
"""Directories above a tree whose entries this process has made durable. They are created once and never renamed."""


@contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """A new file of this name. FileExistsError if there is one: two writers never share a file."""
    with _named(path):
        with open(path, "xb") as file:
            yield file
            sync_file(file)
        sync(_parent(path))


@contextmanager
def replace(path: str) -> Iterator[BinaryIO]:
    """The new content of a file. After any crash the file is the old or the new one, complete."""
    temporary = f"{path}.tmp"
    with _named(path):
        with open(temporary, "wb") as file:
            yield file
            sync_file(file)
        os.replace(temporary, path)
        sync(_parent(path))


@contextmanager
def overwrite(path: str, position: int = 0) -> Iterator[BinaryIO]:
    """The content of a file from this position on. The entry in its directory is left to the caller's `sync`, which
    then covers several files at once.
    """
    with _named(path), open(path, "r+b" if position else "wb") as file:
        file.truncate(position)
        file.seek(position)
        yield file
        sync_file(file)


def make_directory(path: str) -> None:
    """Create the directory and its missing parents. The fsync of its parent makes each new entry durable."""
    if os.path.isdir(path):
        return
    parent = _parent(path)
    make_directory(parent)
    try:
        os.mkdir(path)
    except FileExistsError:
        # Another writer created it, and may not have reached its fsync yet.
        if not os.path.isdir(path):
            raise
    sync(parent)


def sync(path: str | Path) -> None:
    """Fsync a closed file, or the entries of a directory."""
    with _named(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(file: IO[bytes]) -> None:
    """Fsync an open file."""
    file.flush()
    os.fsync(file.fileno())


def sync_tree(directory: Path, pattern: str, root: Path) -> None:
    """Fsync the files of a directory that match, the directory, and the directories above it up to `root`."""
    for file in directory.glob(pattern):
        sync(file)
    sync(directory)
    # Every new directory adds an entry to its parent; those further up change only when they are created.
    sync(directory.parent)
    for parent in directory.parent.parents:
        if parent in _synced_parents or not parent.is_relative_to(root):
            break
        sync(parent)
        _synced_parents.add(parent)


@contextmanager
def home_errors(location: str) -> Iterator[None]:
    """Raise `HomeUnwritable` for an `OSError`. It names the file of the error, else `location`."""
    try:
        yield
    except OSError as error:
        raise HomeUnwritable(location=error.filename or location, problem=error.strerror or str(error)) from error


def _parent(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Without an error number, the text of an OSError with a file name would be lost.
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
