"""Runs on a file system: written once under unique names, made durable, and verified when first opened.

Local files are memory-mapped; `pyarrow.fs` reads other files completely. Paths are relative to the root.
"""

from __future__ import annotations

import os
import uuid
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import fs

from laminae import durable
from laminae.errors import RunDamaged
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
# Files whose checksum this process has verified. Entries outlive the opened runs, because files never change.
VERIFIED_FILES = 1 << 16
_verified: BoundedCache[bool] = BoundedCache(VERIFIED_FILES)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file under the root, whether or not a manifest references it."""

    path: str
    bytes: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class RunStore:
    """The runs under `root`; new ones go to its subdirectory `place` (one per operator and shard)."""

    filesystem: fs.FileSystem
    root: str
    place: str = ""
    cache: BoundedCache[Run] = field(default=_runs)
    verified: BoundedCache[bool] = field(default=_verified)

    @classmethod
    def at(cls, home: str, place: str = "") -> RunStore:
        """Open a store by directory or URI."""
        filesystem, root = fs.FileSystem.from_uri(home if "://" in home else os.path.abspath(home))
        return cls(filesystem, root, place)

    def write(self, spec: TraceSpec, batch: pa.RecordBatch) -> RunEntry:
        """Write sorted rows, at least one, as a durable new run. It is invisible until a manifest references it."""
        path = "/".join(filter(None, (self.place, f"{uuid.uuid4().hex}{SUFFIX}")))
        full, stored = self._full(path), with_facts(spec, batch)
        with durable.home_errors(full):
            sink = self._write_local(full, stored) if self._is_local else self._write_remote(full, stored)
        self.verified.put(full, 1, True)
        return RunEntry(path, batch.num_rows, dead_rows(spec, batch), sink.bytes, sink.checksum)

    def open(self, entry: RunEntry) -> Run:
        """Open the run of an entry; its checksum is verified when this process first opens the file."""
        full = self._full(entry.path)
        return self.cache.get(full, entry.bytes, lambda: self._load(full, entry))

    def files(self) -> Iterator[StoredFile]:
        """All files with the suffix of a run under this store's directory."""
        selector = fs.FileSelector(self._full(self.place), allow_not_found=True, recursive=True)
        for info in self.filesystem.get_file_info(selector):
            if info.type == fs.FileType.File and info.base_name.endswith(SUFFIX):
                yield StoredFile(os.path.relpath(info.path, self.root), info.size, info.mtime)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files. A missing file is not an error, because two garbage collections may run concurrently."""
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
        durable.make_directory(os.path.dirname(full))
        with durable.create(full) as file:
            sink = _CountingSink(file)
            _write(sink, batch)
        return sink

    def _write_remote(self, full: str, batch: pa.RecordBatch) -> _CountingSink:
        self.filesystem.create_dir(os.path.dirname(full), recursive=True)
        with self.filesystem.open_output_stream(full) as file:
            sink = _CountingSink(file)
            _write(sink, batch)
        return sink


def _is_whole(full: str, data: pa.Buffer, entry: RunEntry) -> bool:
    """Raises instead of returning False, which would be cached: a restored file must be verified again."""
    if zlib.crc32(data) != entry.checksum:
        raise RunDamaged(file=full, problem="its checksum does not match the committed one")
    return True


class _CountingSink:
    """Forwards bytes and keeps their count and checksum, so that nothing has to be read back."""

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
        """Does nothing: the caller that opened the file closes it after the fsync."""


def _write(sink: _CountingSink, batch: pa.RecordBatch) -> None:
    with pa.PythonFile(sink, mode="w") as target, pa.ipc.new_file(target, batch.schema) as writer:
        writer.write_batch(batch)
    sink.flush()
