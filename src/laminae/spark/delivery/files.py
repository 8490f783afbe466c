"""Epochs as files of a directory: `epoch-<number>-<part>`. Each appears whole, under its last name, on disk.

A part is prepared under a hidden name and renamed, so doing it again after a crash ends in the same content.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from laminae.catalog.location import find_home
from laminae.engine import faults
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import InvalidOption, NotAvailable, SinkUnavailable
from laminae.spark.delivery.debezium import event_lines
from laminae.spark.delivery.json_lines import lines
from laminae.spark.delivery.modes import is_as_stored, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment

    Part = Callable[[str], None]

SUFFIXES = {"debezium-json": "json"}
_NAME = re.compile(r"\.?epoch-(\d{12})-.*")
_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EACCES})


def deliver_files(segment: Segment, sink: SinkRecord) -> None:
    kind = option(sink.options, "format", SINK_OPTIONS) or "parquet"
    if kind not in PREPARED:
        raise NotAvailable(
            feature=f"Format {kind} of a files sink",
            problem=f"sink {sink.name} cannot write it yet",
            advice=f"Use one of {', '.join(PREPARED)}.",
        )
    target = _target(sink)
    parts = PREPARED[kind](segment, sink)
    with _writing(sink, target):
        os.makedirs(target, exist_ok=True)
        names = [_name(segment, part, kind) for part in range(len(parts))]
        hidden = [os.path.join(target, f".{name}.tmp") for name in names]
        for prepare, temporary in zip(parts, hidden, strict=True):
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            prepare(temporary)
        for name, temporary in zip(names, hidden, strict=True):
            os.replace(temporary, os.path.join(target, name))
            # To rename one link of a file to another of the same file does nothing and leaves both.
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            faults.reach("part in place")
        _remove_parts_behind(target, segment, len(parts), kind)
        _sync(target)


def _name(segment: Segment, part: int, kind: str) -> str:
    return f"epoch-{segment.epoch:012}-{part}.{SUFFIXES.get(kind, kind)}"


def _remove_parts_behind(target: str, segment: Segment, parts: int, kind: str) -> None:
    """A snapshot that is written again after a crash may have fewer parts than the attempt before it."""
    with suppress(FileNotFoundError):
        for part in count(parts):
            os.unlink(os.path.join(target, _name(segment, part, kind)))


def take_back_files(sink: SinkRecord, after: int) -> None:
    """Remove what was delivered of later epochs."""
    target = _target(sink)
    with _writing(sink, target):
        for name in os.listdir(target) if os.path.isdir(target) else ():
            found = _NAME.fullmatch(name)
            if found and int(found.group(1)) > after:
                os.unlink(os.path.join(target, name))
        if os.path.isdir(target):
            _sync(target)


def _link(file: str, temporary: str) -> None:
    try:
        os.link(file, temporary)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copyfile(file, temporary)
        _sync(temporary)


def _write_parquet(batches: Iterator[pa.RecordBatch], temporary: str) -> None:
    first = next(batches)
    with pq.ParquetWriter(temporary, first.schema) as out:
        out.write_batch(first)
        for batch in batches:
            out.write_batch(batch)
    _sync(temporary)


def _write_lines(texts: Iterable[bytes], temporary: str) -> None:
    with open(temporary, "wb") as out:
        out.writelines(texts)
        out.flush()
        os.fsync(out.fileno())


def _parquet(segment: Segment, sink: SinkRecord) -> list[Part]:
    if is_as_stored(segment, sink):
        return [partial(_link, file) for file in segment.files()]
    return [partial(_write_parquet, part) for part in parts_of(segment, sink)]


def _json(segment: Segment, sink: SinkRecord) -> list[Part]:
    return [partial(_write_lines, _lines(part)) for part in parts_of(segment, sink)]


def _lines(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return (line for batch in batches for line in lines(batch))


def _debezium(segment: Segment, sink: SinkRecord) -> list[Part]:
    """All in one part: the number of an event is its place in the epoch."""
    return [partial(_write_lines, event_lines(segment, sink))]


PREPARED: dict[str, Callable[[Segment, SinkRecord], list[Part]]] = {
    "parquet": _parquet,
    "json": _json,
    "debezium-json": _debezium,
}
"""The parts of each format, each a function that makes it under the hidden name that it is given."""


def _target(sink: SinkRecord) -> str:
    path = option(sink.options, "path", SINK_OPTIONS)
    if path is None:
        raise InvalidOption(
            option="path", owner=sink.name, problem="it is missing", advice="Give the directory to write to."
        )
    directory = find_home(path).directory
    if directory is None:
        raise NotAvailable(
            feature=f"Writing to {path}",
            problem=f"sink {sink.name} needs a directory of this machine's file system",
            advice="Use a local or mounted directory.",
        )
    return str(directory)


@contextmanager
def _writing(sink: SinkRecord, target: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkUnavailable(sink=sink.name, location=target, problem=error.strerror or str(error)) from error


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
