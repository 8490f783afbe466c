"""The format of a lakehouse table: Parquet by field id, with the change type of each row from its file or its feed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.formats.file_records import all_of, refused_files
from laminae.spark.formats.json.records import as_newest
from laminae.spark.formats.parquet.footers import Refused
from laminae.spark.formats.protocol import Decoded
from laminae.spark.sources.lakehouse.change_type_column import live_name, reading_changes, with_value
from laminae.spark.sources.lakehouse.table_files import Change, TableFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.formats.parquet.decode import ParquetReader
    from laminae.spark.formats.protocol import QuickRows, Records
    from laminae.spark.sources.lakehouse.change_type_column import Marks
    from laminae.spark.sources.lakehouse.table_files import TableFiles


@dataclass(frozen=True, slots=True)
class TableFormat:
    """`laminae.spark.formats.protocol.RecordFormat` of the files of a table.

    `marks` defines how rows are retracted; if they cannot be, a removed file becomes a dead letter as a whole.
    """

    table_files: TableFiles
    marks: Marks
    reader: ParquetReader

    def decoded(self, records: Records, table: DecoderTable) -> Decoded:
        return self._decoded(records.spark, _files(records), table)

    def decoded_again(self, letters: DataFrame, table: DecoderTable, reopened: Records | None) -> Decoded:
        newest = replace(table, decoders=table.decoders[-1:])
        kinds = {entry.item: entry.change for entry in entries_of(self.table_files, letters)}
        gone = [item for item, change in kinds.items() if change is Change.REMOVED]
        said = [item for item, change in kinds.items() if change is Change.SAID]
        whole = () if reopened is None else _files(reopened)
        decoded = self._decoded(letters.sparkSession, whole, newest)
        records = decoded.records
        if len(said) < len(kinds):
            rows = letters.where(~F.col("item").isin(*said)) if said else letters
            records = records.union(self.marks.marked(self._again(rows, newest), gone, newest))
        if said:
            changes = self._again(letters.where(F.col("item").isin(*said)), reading_changes(newest))
            records = records.union(self.marks.said(changes, newest))
        return replace(decoded, records=records)

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        return False

    def arrow_rows(self, records: Records, table: DecoderTable, are_short: bool) -> QuickRows | None:
        return None

    def fast_rows(self, records: Records, table: DecoderTable, fits: str | None) -> QuickRows | None:
        return None

    def make_ready(self, spark: SparkSession, table: DecoderTable, records: Records | None) -> None:
        """Nothing to prepare: the plan depends on what the files contain."""

    def grown(self, records: Records, decoder: Decoder) -> pa.Schema | Refused:
        return Refused("its schema is that of the table")

    def _again(self, letters: DataFrame, table: DecoderTable) -> DataFrame:
        return self.reader.decoded_again(as_newest(letters, table), table)

    def _decoded(self, spark: SparkSession, entries: Sequence[TableFile], table: DecoderTable) -> Decoded:
        # New columns are found in the table's own schema, not in the data: see `TableSource.outside`.
        reading = replace(table, finds_unknown_fields=table.refuses_unknown)
        parts = [self._rows(spark, files, reading) for files in _alike(filter(self.marks.reads, entries))]
        reasons = [(entry, self.marks.refusal(entry)) for entry in entries]
        parts += refused_files(spark, [(entry, Refused(reason)) for entry, reason in reasons if reason], table.current)
        return Decoded(all_of(spark, parts, table.current), _unchanged)

    def _rows(self, spark: SparkSession, files: Sequence[TableFile], table: DecoderTable) -> DataFrame:
        is_said = files[0].change is Change.SAID
        records = self.reader.decoded(spark, files, reading_changes(table) if is_said else table).records
        for name, text in files[0].partition:
            if (live := live_name(name, table)) is not None:
                records = with_value(records, live, F.lit(text))
        if is_said:
            return self.marks.said(records, table)
        return self.marks.marked(records, [file.item for file in files if file.change is Change.REMOVED], table)


def entries_of(files: TableFiles, letters: DataFrame) -> list[TableFile]:
    """The files that these dead letters come from."""
    items = sorted(row["item"] for row in letters.select("item").distinct().collect())
    return [entry for item in items for entry in files.entries(range(item, item + 1))]


def _files(records: Records) -> Sequence[TableFile]:
    return cast("Sequence[TableFile]", records.files())


def _alike(entries: Iterable[TableFile]) -> list[list[TableFile]]:
    """The files in groups that are read together. A path occurs at most once in a group: the item of a record is
    derived from its path.
    """
    groups: dict[tuple[object, ...], list[TableFile]] = {}
    times: Counter[str] = Counter()
    for entry in entries:
        times[entry.path] += 1
        key = (entry.change is Change.SAID, entry.partition, times[entry.path])
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _unchanged(current: pa.Schema) -> pa.Schema:
    return current
