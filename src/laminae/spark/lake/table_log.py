"""The log of a table: its items are the files that the table's versions added and removed.

Files are read by Spark, by field id, as those of a `files` source. An epoch always ends where a version does.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.errors import SnapshotExpired
from laminae.spark.contract import RAW_COLUMNS, Decoded, Outside
from laminae.spark.files.broken import why_broken
from laminae.spark.files.footers import Refused
from laminae.spark.files.parquet import ParquetReader
from laminae.spark.files.records import all_of, refused_files
from laminae.spark.lake.marks import NOT_TAKEN_BACK, live_name, reading_changes, with_value
from laminae.spark.lake.table_files import Change, TableFile
from laminae.spark.logs.numbered import LIMIT, NumberedLog, as_newest
from laminae.spark.logs.stream import LogOffsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.contract import LogRange, QuickRows
    from laminae.spark.lake.marks import Marks
    from laminae.spark.lake.table_files import TableFiles
    from laminae.spark.logs.tails import Settings

REMOVED = f"snapshot {{snapshot}} removes the rows of this file, and {NOT_TAKEN_BACK}"
GONE = "its file {path} is gone"


class TableLog(NumberedLog):
    """`marks` say how rows are taken back; a file that goes is a dead letter as a whole where they cannot be."""

    def __init__(self, settings: Settings, files: TableFiles, marks: Marks) -> None:
        super().__init__(settings)
        self._list = files
        self._marks = marks
        self._reader = ParquetReader()

    def offsets(self) -> LogOffsets:
        return VersionOffsets(self._list, int(self._settings[LIMIT]))

    def outside(self, span: LogRange) -> Outside | None:
        items = self._items(span)
        if not items:
            return None
        # With the item before: what changed since then is new in this range.
        entries = self._list.entries(range(max(items.start - 1, 0), items.stop))
        ids = [number for number, _ in groupby(entry.schema for entry in entries)]
        is_first = items.start == 0
        if len(ids) == 1 and not is_first:
            return None
        return Outside(ids[-1], partial(self._list.wanted, ids=ids, is_first=is_first))

    def descriptors(self, span: LogRange) -> list[TableFile]:
        """The files of a range that are read; SnapshotExpired when one is gone."""
        items = self._items(span)
        if not items:
            return []
        self._directory.items(items.stop)
        left_out = {*span.refused, *dict(span.broken)}
        found = [entry for entry in self._list.entries(items) if entry.item not in left_out]
        return _uncancelled(found) if self._marks.cancels else found

    def read(self, spark: SparkSession, span: LogRange, columns: Sequence[str] = RAW_COLUMNS) -> DataFrame:
        raise AssertionError("the rows of a table are no bytes")

    def decoded(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> Decoded:
        found = self.descriptors(span)
        for entry in found:
            self._check(entry)
        return self.with_broken(spark, span, table, self._decoded(spark, found, table))

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        known = dict(span.broken)
        found = []
        for entry in self._list.entries(self._items(span)):
            if entry.item not in known and self._is_read(entry):
                self._check(entry)
                found.append((entry.item, why_broken(entry.path, is_parquet=True)))
        return (*span.broken, *((item, reason) for item, reason in found if reason is not None))

    def with_broken(self, spark: SparkSession, span: LogRange, table: DecoderTable, found: Decoded) -> Decoded:
        if not span.broken:
            return found
        reasons = dict(span.broken)
        entries = [entry for entry in self._list.entries(self._items(span)) if entry.item in reasons]
        (letters,) = refused_files(spark, [(entry, Refused(reasons[entry.item])) for entry in entries], table.current)
        return replace(found, records=found.records.unionByName(letters, allowMissingColumns=True))

    def quick_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, fits: str | None = None
    ) -> QuickRows | None:
        return None

    def make_ready(self, spark: SparkSession, table: DecoderTable, like: LogRange | None) -> None:
        """There is no quick way to prepare."""

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        newest = replace(table, decoders=table.decoders[-1:])
        single = letters.where(F.col("value").isNotNull())
        whole = self._entries_of(letters.where(F.col("value").isNull()))
        kinds = {entry.item: entry.change for entry in self._entries_of(single)}
        gone = [item for item, change in kinds.items() if change is Change.REMOVED]
        said = [item for item, change in kinds.items() if change is Change.SAID]
        found = self._decoded(letters.sparkSession, [_as_it_is(entry) for entry in whole], newest)
        records = found.records
        if len(said) < len(kinds):
            rows = single.where(~F.col("item").isin(*said)) if said else single
            records = records.union(self._marks.marked(self._again(rows, newest), gone, newest))
        if said:
            changes = self._again(single.where(F.col("item").isin(*said)), reading_changes(newest))
            records = records.union(self._marks.said(changes, newest))
        return replace(found, records=records)

    def _again(self, letters: DataFrame, table: DecoderTable) -> DataFrame:
        return self._reader.decoded_again(as_newest(letters, table), table)

    def _decoded(self, spark: SparkSession, entries: Sequence[TableFile], table: DecoderTable) -> Decoded:
        # The table's own schema says what is new in it: see `outside`.
        reading = replace(table, finds_unknown_fields=table.refuses_unknown)
        parts = [self._rows(spark, files, reading) for files in _alike(filter(self._is_read, entries))]
        refused = [(entry, Refused(self._reason(entry))) for entry in entries if self._reason(entry)]
        parts += refused_files(spark, refused, table.current)
        return Decoded(all_of(spark, parts, table.current), _unchanged)

    def _rows(self, spark: SparkSession, files: Sequence[TableFile], table: DecoderTable) -> DataFrame:
        is_said = files[0].change is Change.SAID
        records = self._reader.decoded(spark, files, reading_changes(table) if is_said else table).records
        for name, text in files[0].partition:
            if (live := live_name(name, table)) is not None:
                records = with_value(records, live, F.lit(text))
        if is_said:
            return self._marks.said(records, table)
        return self._marks.marked(records, [file.item for file in files if file.change is Change.REMOVED], table)

    def _is_read(self, entry: TableFile) -> bool:
        return entry.change is not Change.NOTHING and not self._reason(entry)

    def _reason(self, entry: TableFile) -> str:
        """Why a file is a dead letter as a whole; empty where it is none."""
        if entry.change is Change.REMOVED and self._marks.mark is None:
            return REMOVED.format(snapshot=entry.snapshot)
        return entry.reason or ""

    def _check(self, entry: TableFile) -> None:
        """Files that a table no longer has stay until the versions that had them expire."""
        if self._is_read(entry) and not os.path.exists(entry.path):
            raise SnapshotExpired(
                source=self._directory.source,
                table=self._list.name,
                snapshot=entry.snapshot,
                problem=GONE.format(path=entry.path),
            )

    def _entries_of(self, letters: DataFrame) -> list[TableFile]:
        items = sorted(row["item"] for row in letters.select("item").distinct().collect())
        return [entry for item in items for entry in self._list.entries(range(item, item + 1))]


class VersionOffsets(LogOffsets):
    """Epochs that end where a version does: in between, the table never was as it would be seen."""

    def __init__(self, files: TableFiles, limit: int) -> None:
        super().__init__(files, limit)
        self._files = files

    def latest(self, seen: int) -> int:
        found = super().latest(seen)
        return self._files.end_of(found) if found > seen else found


def _uncancelled(entries: Sequence[TableFile]) -> list[TableFile]:
    """Without the files that came and went within these, whose rows leave nothing: they may be gone by now."""
    came: dict[str, TableFile] = {}
    cancelled: set[int] = set()
    for entry in entries:
        if entry.change is Change.ADDED:
            came[entry.path] = entry
        elif entry.change is Change.REMOVED and entry.path in came:
            cancelled |= {came.pop(entry.path).item, entry.item}
    return [entry for entry in entries if entry.item not in cancelled]


def _alike(entries: Iterable[TableFile]) -> list[list[TableFile]]:
    """The files in groups that are read together. Each path occurs once in one: the path of a record tells its item."""
    groups: dict[tuple[object, ...], list[TableFile]] = {}
    times: Counter[str] = Counter()
    for entry in entries:
        times[entry.path] += 1
        key = (entry.change is Change.SAID, entry.partition, times[entry.path])
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _as_it_is(entry: TableFile) -> TableFile:
    """The file of a letter as it is now: it may have been mended, or be gone."""
    if entry.change in (Change.REFUSED, Change.NOTHING):
        return entry
    try:
        status = os.stat(entry.path)
    except OSError:
        return replace(entry, change=Change.REFUSED, reason=GONE.format(path=entry.path))
    return replace(entry, size=status.st_size, modified=status.st_mtime_ns // 1000)


def _unchanged(current: pa.Schema) -> pa.Schema:
    return current
