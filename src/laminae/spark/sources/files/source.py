"""The log of a files source: each file of a directory is one item. Its records are lines of bytes, or the files
themselves for formats that read whole files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from laminae.engine.source_spec import spec_of
from laminae.errors import InvalidOption, SourceUnavailable
from laminae.spark.catalyst.expression import Expression
from laminae.spark.catalyst.paths import literal_path, local_path, reading_many
from laminae.spark.formats.file_records import PATH, line_number, path_of, place_columns
from laminae.spark.formats.parquet.footers import Refused
from laminae.spark.formats.protocol import RAW_COLUMNS
from laminae.spark.sources.base import NumberedSource, no_records, settings_of
from laminae.spark.sources.files.broken_files import shown_path, why_broken
from laminae.spark.sources.files.fingerprint import check_unchanged
from laminae.spark.sources.files.listing import FileEntry, FileList, ListedFile
from laminae.spark.sources.latest_offset import log_at
from laminae.spark.sources.protocol import ReopenedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.errors import LaminaeError
    from laminae.spark.sources.latest_offset import Settings
    from laminae.spark.sources.protocol import LogRange


GONE = "it is gone"


def open_source(source: SourceRecord, home: str) -> FilesSource:
    spec = spec_of(source)
    path = spec.setting("path")
    if path is None:
        raise InvalidOption(
            option="path",
            owner=source.name,
            problem="it is missing",
            advice="Set path to the directory of the files.",
        )
    settings = settings_of(source, home, path=local_path(path, f"source {source.name}"))
    return FilesSource(settings, is_parquet=spec.format.name == "parquet", has_order=spec.keeps_table)


@dataclass(frozen=True, slots=True)
class FileRecords:
    """`laminae.spark.formats.protocol.Records` of given files. `session` is called only if records are read."""

    session: Callable[[], SparkSession]
    entries: Sequence[FileEntry]
    has_order: bool = False

    @property
    def spark(self) -> SparkSession:
        return self.session()

    def frame(self, columns: Sequence[str] = RAW_COLUMNS, boundaries: Collection[int] | None = None) -> DataFrame:
        return lines(self.spark, self.entries, columns, self.has_order)

    def files(self) -> Sequence[FileEntry]:
        return self.entries

    def file_paths(self, columns: Sequence[str]) -> None:
        return None

    def planned(self, columns: Sequence[str]) -> None:
        return None


class FilesSource(NumberedSource):
    """The setting `path` is the directory or pattern that is listed.

    `has_order`: the records of a file need offsets that give their order. `is_parquet`: a file is checked as Parquet.
    """

    def __init__(self, settings: Settings, is_parquet: bool = False, has_order: bool = False) -> None:
        # Two lists: Spark's stream asks for the number of files while another thread asks for problems.
        super().__init__(settings, FileList(log_at(settings), settings["path"]))
        self._list = FileList(self._directory, settings["path"])
        self._has_order = has_order
        self._is_parquet = is_parquet

    def files(self, span: LogRange) -> tuple[FileEntry, ...]:
        """The files of a range, each as it was when it was listed; SourceUnavailable if one has changed or is gone."""
        items = self._items(span)
        if not items:
            return ()
        self._directory.items(items.stop)
        left_out = {*span.refused, *dict(span.broken)}
        entries = tuple(entry for entry in self._list.entries(items) if entry.item not in left_out)
        if span.only_left:
            entries = tuple(entry for entry in entries if os.path.exists(entry.path))
        for entry in entries:
            # Raises for a name that is not valid UTF-8: sending it to the JVM would break the py4j connection.
            entry.path.encode()
            self._check(entry)
        return entries

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        known = dict(span.broken)
        entries = [entry for entry in self._list.entries(self._items(span)) if entry.item not in known]
        for entry in entries:
            self._check(entry)
        reasons = ((entry.item, why_broken(entry.path, self._is_parquet)) for entry in entries)
        return (*span.broken, *((item, reason) for item, reason in reasons if reason is not None))

    def broken_files(self, span: LogRange) -> list[tuple[FileEntry, Refused]]:
        reasons = dict(span.broken)
        entries = [entry for entry in self._list.entries(self._items(span)) if entry.item in reasons]
        return [(replace(entry, path=shown_path(entry.path)), Refused(reasons[entry.item])) for entry in entries]

    def newest(self, count: int) -> tuple[FileEntry, ...]:
        """The last `count` files, oldest first, without those that are gone."""
        items = self._list.items(0)
        entries = (_as_it_is(entry) for entry in self._list.entries(range(max(0, items - count), items)))
        return tuple(entry for entry in entries if entry is not None)

    def read(
        self,
        spark: SparkSession,
        span: LogRange,
        columns: Sequence[str] = RAW_COLUMNS,
        boundaries: Collection[int] | None = None,
    ) -> DataFrame:
        return lines(spark, self.files(span), columns, self._has_order)

    def file_paths(self, span: LogRange, columns: Sequence[str]) -> Sequence[str] | None:
        paths = [entry.path for entry in self.files(span)]
        return paths if paths and tuple(columns) == ("value",) else None

    def reopened(self, letters: DataFrame) -> ReopenedFiles:
        whole = letters.where(F.col("value").isNull()).select("item", "partition", "timestamp")
        files = sorted((_named(row) for row in whole.distinct().collect()), key=lambda entry: entry.item)
        reasons = {entry: _why_not_again(entry, self._is_parquet) for entry in files}
        readable = [entry for entry in files if reasons[entry] is None]
        spark = letters.sparkSession
        refused = [(entry, Refused(reason)) for entry, reason in reasons.items() if reason is not None]
        return ReopenedFiles(FileRecords(lambda: spark, readable, self._has_order), refused)

    def problem(self) -> LaminaeError | None:
        return self._list.problem()

    def _check(self, entry: ListedFile) -> None:
        """Every read of a record must return the same bytes: SourceUnavailable if the file changed or is gone."""
        try:
            check_unchanged(entry, self._directory.source)
        except OSError as error:
            problem = error.strerror or str(error)
            raise SourceUnavailable(source=self._directory.source, location=entry.path, problem=problem) from error


def lines(
    spark: SparkSession, files: Sequence[FileEntry], columns: Sequence[str] = RAW_COLUMNS, has_order: bool = False
) -> DataFrame:
    """The lines of these files as raw records.

    Their offsets are NULL, as Spark does not report the position of a line in its file, unless `has_order`.
    """
    if not files:
        return no_records(spark)
    with reading_many(spark, len(files)):
        # Only a newline ends a line: a carriage return may be white space between two tokens of a JSON document.
        text = spark.read.option("lineSep", "\n").text([literal_path(entry.path) for entry in files])
    if tuple(columns) == ("value",):
        return text.selectExpr("CAST(value AS BINARY) AS value")
    offset = line_number() if has_order else Expression("CAST(NULL AS BIGINT)")
    read = text.select(
        "value", path_of(Expression("_metadata.file_path")).column.alias(PATH), offset.column.alias("offset")
    )
    raw = {
        "key": F.lit(None).cast("binary"),
        "value": F.col("value").cast("binary"),
        "offset": F.col("offset"),
        **{name: expression.column for name, expression in place_columns(files).items()},
    }
    return read.select(*(raw[name].alias(name) for name in RAW_COLUMNS if name in columns))


def _as_it_is(entry: FileEntry) -> FileEntry | None:
    try:
        status = os.stat(entry.path)
    except OSError:
        return None
    return replace(entry, size=status.st_size, modified=status.st_mtime_ns // 1000)


def _why_not_again(entry: FileEntry, is_parquet: bool) -> str | None:
    """Why a file that was refused as a whole still cannot be read; None if it now can."""
    return why_broken(entry.path, is_parquet) if os.path.exists(entry.path) else GONE


def _named(letter: Row) -> FileEntry:
    """The file of a dead letter as it is now: it may have been repaired. A missing one is kept and refused as gone."""
    entry = FileEntry(letter["item"], letter["partition"], 0, 0)
    return _as_it_is(entry) or entry
