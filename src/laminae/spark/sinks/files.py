"""The files sink: write each epoch as files `epoch-<number>-<part>` of a directory.

A part is written under a hidden name, made durable and renamed, so readers never see a partial file, and repeating a
delivery after a crash ends with the same content.
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

from laminae import durable
from laminae.catalog.location import find_home
from laminae.engine import faults
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import InvalidOption, NotAvailable, SinkUnavailable
from laminae.spark.sinks.debezium import event_lines
from laminae.spark.sinks.json_lines import lines
from laminae.spark.sinks.modes import is_as_stored, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment

    Part = Callable[[str], None]

SUFFIXES = {"debezium-json": "json"}
_NAME = re.compile(r"\.?epoch-(\d{12})-.*")
_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EACCES})


def deliver_files(segment: Segment, sink: SinkRecord) -> None:
    kind = option(sink.options, "format", SINK_OPTIONS) or "parquet"
    if kind not in PREPARED:
        raise NotAvailable(
            feature=f"Format {kind} of a files sink",
            problem=f"sink {sink.name} does not support it",
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
            # rename(2) does nothing if both names are hard links to the same file, and leaves both.
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            faults.reach("part in place")
        _remove_parts_behind(target, segment, len(parts), kind)
        durable.sync(target)


def _name(segment: Segment, part: int, kind: str) -> str:
    return f"epoch-{segment.epoch:012}-{part}.{SUFFIXES.get(kind, kind)}"


def _remove_parts_behind(target: str, segment: Segment, parts: int, kind: str) -> None:
    """A snapshot that is rewritten after a crash may have fewer parts than the previous attempt."""
    with suppress(FileNotFoundError):
        for part in count(parts):
            os.unlink(os.path.join(target, _name(segment, part, kind)))


def take_back_files(sink: SinkRecord, after: int) -> None:
    """Remove the files of epochs after `after`."""
    target = _target(sink)
    with _writing(sink, target):
        for name in os.listdir(target) if os.path.isdir(target) else ():
            epoch = _NAME.fullmatch(name)
            if epoch and int(epoch.group(1)) > after:
                os.unlink(os.path.join(target, name))
        if os.path.isdir(target):
            durable.sync(target)


def _link(file: str, temporary: str) -> None:
    try:
        os.link(file, temporary)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copyfile(file, temporary)
        durable.sync(temporary)


def _write_parquet(batches: Iterator[pa.RecordBatch], temporary: str) -> None:
    first = next(batches)
    with pq.ParquetWriter(temporary, first.schema) as out:
        out.write_batch(first)
        for batch in batches:
            out.write_batch(batch)
    durable.sync(temporary)


def _write_lines(texts: Iterable[bytes], temporary: str) -> None:
    with durable.overwrite(temporary) as out:
        out.writelines(texts)


def _parquet(segment: Segment, sink: SinkRecord) -> list[Part]:
    if is_as_stored(segment, sink):
        return [partial(_link, file) for file in segment.files()]
    return [partial(_write_parquet, part) for part in parts_of(segment, sink)]


def _json(segment: Segment, sink: SinkRecord) -> list[Part]:
    return [partial(_write_lines, _lines(part)) for part in parts_of(segment, sink)]


def _lines(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return (line for batch in batches for line in lines(batch))


def _debezium(segment: Segment, sink: SinkRecord) -> list[Part]:
    """One part only: events are numbered by their position in the epoch."""
    return [partial(_write_lines, event_lines(segment, sink))]


PREPARED: dict[str, Callable[[Segment, SinkRecord], list[Part]]] = {
    "parquet": _parquet,
    "json": _json,
    "debezium-json": _debezium,
}
"""For each format the parts of a segment. A part is a function that writes it to the temporary path it is passed."""


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
            problem=f"sink {sink.name} needs a directory on a local or mounted file system",
            advice="Use a local or mounted directory.",
        )
    return str(directory)


@contextmanager
def _writing(sink: SinkRecord, target: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkUnavailable(sink=sink.name, location=target, problem=error.strerror or str(error)) from error
