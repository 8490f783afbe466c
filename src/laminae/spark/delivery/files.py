"""Epochs as files of a directory: `epoch-<number>-<part>`. Each appears whole, under its last name, on disk.

A part is prepared under a hidden name and renamed, so doing it again after a crash ends in the same content.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

from laminae.catalog.location import find_home
from laminae.engine import faults
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import InvalidOption, NotAvailable, SinkUnavailable
from laminae.spark.delivery.json_lines import lines
from laminae.spark.delivery.segment import batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment

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
    parts = segment.files()
    with _writing(sink, target):
        os.makedirs(target, exist_ok=True)
        names = [_name(segment, part, kind) for part in range(len(parts))]
        hidden = [os.path.join(target, f".{name}.tmp") for name in names]
        for file, temporary in zip(parts, hidden, strict=True):
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            PREPARED[kind](file, temporary, segment)
        for name, temporary in zip(names, hidden, strict=True):
            os.replace(temporary, os.path.join(target, name))
            # To rename one link of a file to another of the same file does nothing and leaves both.
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            faults.reach("part in place")
        _remove_parts_behind(target, segment, len(parts), kind)
        _sync(target)


def _name(segment: Segment, part: int, kind: str) -> str:
    return f"epoch-{segment.epoch:012}-{part}.{kind}"


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


def _linked(file: str, temporary: str, segment: Segment) -> None:
    try:
        os.link(file, temporary)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copyfile(file, temporary)
        _sync(temporary)


def _json(file: str, temporary: str, segment: Segment) -> None:
    with open(temporary, "wb") as out:
        for batch in batches(file, segment.schema):
            out.writelines(lines(batch))
        out.flush()
        os.fsync(out.fileno())


PREPARED: dict[str, Callable[[str, str, Segment], None]] = {"parquet": _linked, "json": _json}
"""How a part is made under its hidden name, for each format."""


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
