"""Formats whose records are not lines of bytes: CSV with its header, and Parquet. They read whole files.

A `FileReader` decodes the files; `FileFormat` makes a `RecordFormat` of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from laminae.spark.formats.json.records import as_newest
from laminae.spark.formats.protocol import Decoded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.formats.protocol import QuickRows, Records
    from laminae.spark.sources.files.listing import FileEntry


class FileReader(Protocol):
    """Decodes files; created for one source."""

    def decoded(self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable) -> Decoded:
        """The records of these files; a file that cannot be read becomes one record without a value."""
        ...

    def quick_rows(
        self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable, fits: str | None
    ) -> QuickRows | None:
        """As `RecordFormat.fast_rows`: None if the records need the full check or the reader has no fast path."""
        ...

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> DataFrame:
        """Dead letters that have a value, decoded with the newest version of the table."""
        ...

    def grown(self, files: Sequence[FileEntry], decoder: Decoder) -> pa.Schema | Refused:
        """The decoder's schema plus what these files add to it. Reads a bounded part of each file, without Spark."""
        ...


@dataclass(frozen=True, slots=True)
class FileFormat:
    """`laminae.spark.formats.protocol.RecordFormat` over the files of a range."""

    reader: FileReader

    def decoded(self, records: Records, table: DecoderTable) -> Decoded:
        return self.reader.decoded(records.spark, _files(records), table)

    def decoded_again(self, letters: DataFrame, table: DecoderTable, reopened: Records | None) -> Decoded:
        newest = replace(table, decoders=table.decoders[-1:])
        single = self.reader.decoded_again(as_newest(letters, newest), newest)
        if reopened is None:
            return Decoded(single, lambda current: current)
        again = self.reader.decoded(reopened.spark, _files(reopened), newest)
        return Decoded(again.records.union(single), again.wanted)

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        # Readers group files by what they contain, such as the header, and build one plan for each group.
        return False

    def arrow_rows(self, records: Records, table: DecoderTable, are_short: bool) -> QuickRows | None:
        return None

    def fast_rows(self, records: Records, table: DecoderTable, fits: str | None) -> QuickRows | None:
        return self.reader.quick_rows(records.spark, _files(records), table, fits)

    def make_ready(self, spark: SparkSession, table: DecoderTable, records: Records | None) -> None:
        """Nothing to prepare: the plan depends on what the files contain."""

    def grown(self, records: Records, decoder: Decoder) -> pa.Schema | Refused:
        return self.reader.grown(_files(records), decoder)


def _files(records: Records) -> Sequence[FileEntry]:
    files = records.files()
    assert files is not None  # only connectors whose items are files carry this format (engine/options/connectors.py)
    return files
