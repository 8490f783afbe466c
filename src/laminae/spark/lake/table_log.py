"""The log of a table: its items are the files that the table's versions added and removed.

Files are read by Spark, by field id, as those of a `files` source. An epoch always ends where a version does.
"""

from __future__ import annotations

import os
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

NOT_TAKEN_BACK = (
    "snapshot {snapshot} removes the rows of this file, which the source does not take back: that needs "
    "changelog = 'retract' with op_field, or 'upsert' with deleted_by"
)
GONE = "its file {path} is gone"


class TableLog(NumberedLog):
    """`marks` say how rows are taken back; without them, a file that goes is a dead letter as a whole."""

    def __init__(self, settings: Settings, files: TableFiles, marks: Marks | None) -> None:
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
        return _uncancelled(found) if self._marks is not None and self._marks.cancels else found

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

    def quick_rows(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> QuickRows | None:
        return None

    def make_ready(self, spark: SparkSession, table: DecoderTable) -> None:
        """There is no quick way to prepare."""

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        newest = replace(table, decoders=table.decoders[-1:])
        single = letters.where(F.col("value").isNotNull())
        whole = self._entries_of(letters.where(F.col("value").isNull()))
        again = self._reader.decoded_again(as_newest(single, newest), newest)
        if self._marks is not None:
            gone = [entry.item for entry in self._entries_of(single) if entry.change is Change.REMOVED]
            again = self._marks.marked(again, gone, newest)
        found = self._decoded(letters.sparkSession, [_with_reason_if_gone(entry) for entry in whole], newest)
        return replace(found, records=found.records.union(again))

    def _decoded(self, spark: SparkSession, entries: Sequence[TableFile], table: DecoderTable) -> Decoded:
        # The table's own schema says what is new in it: see `outside`.
        reading = replace(table, finds_unknown_fields=table.refuses_unknown)
        parts = [self._rows(spark, files, reading) for files in _without_repeats(filter(self._is_read, entries))]
        refused = [(entry, Refused(self._reason(entry))) for entry in entries if self._reason(entry)]
        parts += refused_files(spark, refused, table.current)
        return Decoded(all_of(spark, parts, table.current), _as_it_is)

    def _rows(self, spark: SparkSession, files: Sequence[TableFile], table: DecoderTable) -> DataFrame:
        records = self._reader.decoded(spark, files, table).records
        if self._marks is None:
            return records
        return self._marks.marked(records, [file.item for file in files if file.change is Change.REMOVED], table)

    def _is_read(self, entry: TableFile) -> bool:
        return entry.change is not Change.NOTHING and not self._reason(entry)

    def _reason(self, entry: TableFile) -> str:
        """Why a file is a dead letter as a whole; empty where it is none."""
        if entry.change is Change.REMOVED and self._marks is None:
            return NOT_TAKEN_BACK.format(snapshot=entry.snapshot)
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


def _without_repeats(entries: Iterable[TableFile]) -> list[list[TableFile]]:
    """The files in groups in which each path occurs once: the path of a record tells its item."""
    groups: list[dict[str, TableFile]] = []
    for entry in entries:
        group = next((group for group in groups if entry.path not in group), None)
        if group is None:
            groups.append(group := {})
        group[entry.path] = entry
    return [list(group.values()) for group in groups]


def _with_reason_if_gone(entry: TableFile) -> TableFile:
    is_gone = entry.change in (Change.ADDED, Change.REMOVED) and not os.path.exists(entry.path)
    return replace(entry, change=Change.REFUSED, reason=GONE.format(path=entry.path)) if is_gone else entry


def _as_it_is(current: pa.Schema) -> pa.Schema:
    return current
