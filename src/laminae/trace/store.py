"""Runs on a file system: written once under names nobody else uses, made durable, and checked when first opened.

Local files are memory-mapped; elsewhere `pyarrow.fs` reads them whole. A name is a path below the root.
"""

from __future__ import annotations

import os
import uuid
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import fs

from laminae.errors import HomeUnwritable, RunDamaged
from laminae.trace.cache import BoundedCache
from laminae.trace.manifest import RunEntry
from laminae.trace.run import Run, dead_rows, read_run, with_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from laminae.trace.spec import TraceSpec

SUFFIX = ".run"
CACHE_BYTES = 1 << 30
_runs: BoundedCache[Run] = BoundedCache(CACHE_BYTES)
# Files whose bytes this process has seen to be right. They outlive the opened runs, because files never change.
VERIFIED_FILES = 1 << 16
_verified: BoundedCache[bool] = BoundedCache(VERIFIED_FILES)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file below the root, whether or not a manifest names it."""

    path: str
    bytes: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class RunStore:
    """The runs below `root`; new ones go to the directory `place` below it (one for each operator and shard)."""

    filesystem: fs.FileSystem
    root: str
    place: str = ""
    cache: BoundedCache[Run] = field(default=_runs)
    verified: BoundedCache[bool] = field(default=_verified)

    @classmethod
    def at(cls, home: str, place: str = "") -> RunStore:
        """By directory or URI."""
        filesystem, root = fs.FileSystem.from_uri(home if "://" in home else os.path.abspath(home))
        return cls(filesystem, root, place)

    def write(self, spec: TraceSpec, batch: pa.RecordBatch) -> RunEntry:
        """A durable new run of sorted rows, at least one. Nothing is seen of it until a manifest names it."""
        path = "/".join(filter(None, (self.place, f"{uuid.uuid4().hex}{SUFFIX}")))
        full, stored = self._full(path), with_facts(spec, batch)
        try:
            sink = self._write_local(full, stored) if self._is_local else self._write_remote(full, stored)
        except OSError as problem:
            raise HomeUnwritable(location=full, problem=str(problem)) from None
        self.verified.put(full, 1, True)
        return RunEntry(path, batch.num_rows, dead_rows(spec, batch), sink.bytes, sink.checksum)

    def open(self, entry: RunEntry) -> Run:
        """The run behind an entry, checked against it when this process first sees the file."""
        full = self._full(entry.path)
        return self.cache.get(full, entry.bytes, lambda: self._load(full, entry))

    def files(self) -> Iterator[StoredFile]:
        """Everything that looks like a run below the place of this store."""
        selector = fs.FileSelector(self._full(self.place), allow_not_found=True, recursive=True)
        for info in self.filesystem.get_file_info(selector):
            if info.type == fs.FileType.File and info.base_name.endswith(SUFFIX):
                yield StoredFile(os.path.relpath(info.path, self.root), info.size, info.mtime)

    def delete(self, paths: Iterable[str]) -> None:
        """What is gone already is no error: collections may meet."""
        for path in paths:
            full = self._full(path)
            if self.filesystem.get_file_info(full).type != fs.FileType.NotFound:
                self.filesystem.delete_file(full)

    @property
    def _is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def _full(self, path: str) -> str:
        return "/".join(filter(None, (self.root, path)))

    def _load(self, full: str, entry: RunEntry) -> Run:
        try:
            if self._is_local:
                source = pa.memory_map(full)
                data = source.read_buffer()
            else:
                with self.filesystem.open_input_file(full) as file:
                    data = file.read_buffer()
        except FileNotFoundError:
            raise RunDamaged(file=full, problem="the file is missing") from None
        except OSError as problem:
            raise RunDamaged(file=full, problem=str(problem)) from None
        if data.size != entry.bytes:
            raise RunDamaged(file=full, problem=f"it has {data.size} bytes, {entry.bytes} were written")
        self.verified.get(full, 1, lambda: _is_whole(full, data, entry))
        return read_run(full, data)

    def _write_local(self, full: str, batch: pa.RecordBatch) -> _CountingSink:
        _make_directory(os.path.dirname(full))
        with open(full, "xb") as file:
            sink = _CountingSink(file)
            _write(sink, batch)
            os.fsync(file.fileno())
        _sync_directory(os.path.dirname(full))
        return sink

    def _write_remote(self, full: str, batch: pa.RecordBatch) -> _CountingSink:
        self.filesystem.create_dir(os.path.dirname(full), recursive=True)
        with self.filesystem.open_output_stream(full) as file:
            sink = _CountingSink(file)
            _write(sink, batch)
        return sink


def _is_whole(full: str, data: pa.Buffer, entry: RunEntry) -> bool:
    """Raises rather than says no, which would be remembered: a file that is put back is looked at again."""
    if zlib.crc32(data) != entry.checksum:
        raise RunDamaged(file=full, problem="its checksum is not the one that was committed")
    return True


class _CountingSink:
    """Passes bytes on and keeps their number and checksum, so that nothing is read back."""

    closed = False

    def __init__(self, file: BinaryIO | pa.NativeFile) -> None:
        self._file = file
        self.bytes = 0
        self.checksum = 0

    def write(self, data: pa.Buffer) -> int:
        self._file.write(data)
        self.checksum = zlib.crc32(data, self.checksum)
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The file is closed by whoever opened it, after it is made durable."""


def _write(sink: _CountingSink, batch: pa.RecordBatch) -> None:
    with pa.PythonFile(sink, mode="w") as target, pa.ipc.new_file(target, batch.schema) as writer:
        writer.write_batch(batch)
    sink.flush()


def _make_directory(path: str) -> None:
    """With every parent that is missing; each new entry is made durable in the directory that holds it."""
    if not os.path.isdir(path):
        _make_directory(os.path.dirname(path))
        os.makedirs(path, exist_ok=True)
        _sync_directory(os.path.dirname(path))


def _sync_directory(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
