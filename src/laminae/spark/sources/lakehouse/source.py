"""The log of a lakehouse table: its items are the files that the table's versions added and removed.

Spark reads the files by field id, like those of a `files` source. An epoch always ends at the end of a version.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.errors import SnapshotExpired
from laminae.spark.formats.parquet.decode import ParquetReader
from laminae.spark.formats.parquet.footers import Refused
from laminae.spark.formats.protocol import RAW_COLUMNS
from laminae.spark.sources.base import LIMIT, NumberedSource
from laminae.spark.sources.files.broken_files import why_broken
from laminae.spark.sources.files.source import FileRecords
from laminae.spark.sources.lakehouse.format import TableFormat, entries_of
from laminae.spark.sources.lakehouse.table_files import Change, TableFile
from laminae.spark.sources.micro_batch_stream import LogOffsets
from laminae.spark.sources.protocol import Outside, ReopenedFiles

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.sources.lakehouse.change_type_column import Marks
    from laminae.spark.sources.lakehouse.table_files import TableFiles
    from laminae.spark.sources.latest_offset import Settings
    from laminae.spark.sources.protocol import LogRange

GONE = "its file {path} is gone"


class TableSource(NumberedSource):
    """`marks` defines how rows are retracted; if they cannot be, a removed file becomes a dead letter as a whole."""

    def __init__(self, settings: Settings, tail: TableFiles, files: TableFiles, marks: Marks) -> None:
        super().__init__(settings, tail)
        self._list = files
        self._marks = marks

    def offsets(self) -> LogOffsets:
        return VersionOffsets(self._list, int(self._settings[LIMIT]))

    def outside(self, span: LogRange) -> Outside | None:
        items = self._items(span)
        if not items:
            return None
        # Includes the item before the range, to find schema changes at its beginning.
        entries = self._list.entries(range(max(items.start - 1, 0), items.stop))
        ids = [number for number, _ in groupby(entry.schema for entry in entries)]
        is_first = items.start == 0
        if len(ids) == 1 and not is_first:
            return None
        return Outside(ids[-1], partial(self._list.wanted, ids=ids, is_first=is_first))

    def files(self, span: LogRange) -> list[TableFile]:
        """The files of a range without those that are refused, broken or cancel out; SnapshotExpired if one is gone."""
        items = self._items(span)
        if not items:
            return []
        self._directory.items(items.stop)
        left_out = {*span.refused, *dict(span.broken)}
        entries = [entry for entry in self._list.entries(items) if entry.item not in left_out]
        if span.only_left:
            entries = [entry for entry in entries if not self._marks.reads(entry) or os.path.exists(entry.path)]
        entries = _uncancelled(entries) if self._marks.cancels else entries
        for entry in entries:
            self._check(entry)
        return entries

    def read(
        self,
        spark: SparkSession,
        span: LogRange,
        columns: Sequence[str] = RAW_COLUMNS,
        boundaries: Collection[int] | None = None,
    ) -> DataFrame:
        raise AssertionError("the rows of a table are no bytes")

    def own_format(self) -> TableFormat:
        return TableFormat(self._list, self._marks, ParquetReader())

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        known = dict(span.broken)
        reasons = []
        for entry in self._list.entries(self._items(span)):
            if entry.item not in known and self._marks.reads(entry):
                self._check(entry)
                reasons.append((entry.item, why_broken(entry.path, is_parquet=True)))
        return (*span.broken, *((item, reason) for item, reason in reasons if reason is not None))

    def broken_files(self, span: LogRange) -> list[tuple[TableFile, Refused]]:
        reasons = dict(span.broken)
        entries = [entry for entry in self._list.entries(self._items(span)) if entry.item in reasons]
        return [(entry, Refused(reasons[entry.item])) for entry in entries]

    def reopened(self, letters: DataFrame) -> ReopenedFiles:
        """A file that is still refused stays in the list, with its reason."""
        whole = entries_of(self._list, letters.where(F.col("value").isNull()))
        spark = letters.sparkSession
        return ReopenedFiles(FileRecords(lambda: spark, tuple(_as_it_is(entry) for entry in whole)))

    def _check(self, entry: TableFile) -> None:
        """SnapshotExpired if the file is gone: removed files stay on disk until the versions that had them expire."""
        if self._marks.reads(entry) and not os.path.exists(entry.path):
            raise SnapshotExpired(
                source=self._directory.source,
                table=self._list.name,
                snapshot=entry.snapshot,
                problem=GONE.format(path=entry.path),
            )


class VersionOffsets(LogOffsets):
    """Epochs that end at the end of a version: anywhere else, readers would see a state that the table never had."""

    def __init__(self, files: TableFiles, limit: int) -> None:
        super().__init__(files, limit)
        self._files = files

    def latest(self, seen: int) -> int:
        items = super().latest(seen)
        return self._files.end_of(items) if items > seen else items


def _uncancelled(entries: Sequence[TableFile]) -> list[TableFile]:
    """Without the files that were both added and removed within these: their rows cancel out, and the files may have
    been deleted by now.
    """
    added: dict[str, TableFile] = {}
    cancelled: set[int] = set()
    for entry in entries:
        if entry.change is Change.ADDED:
            added[entry.path] = entry
        elif entry.change is Change.REMOVED and entry.path in added:
            cancelled |= {added.pop(entry.path).item, entry.item}
    return [entry for entry in entries if entry.item not in cancelled]


def _as_it_is(entry: TableFile) -> TableFile:
    """The file of a dead letter as it is now: it may have been repaired or deleted."""
    if entry.change in (Change.REFUSED, Change.NOTHING):
        return entry
    try:
        status = os.stat(entry.path)
    except OSError:
        return replace(entry, change=Change.REFUSED, reason=GONE.format(path=entry.path))
    return replace(entry, size=status.st_size, modified=status.st_mtime_ns // 1000)
