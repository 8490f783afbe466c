"""The types that the parts of the data plane exchange: raw records, decoded records, rows; and what a format does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.catalyst.plans.plan_template import Template
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.sources.files.listing import FileEntry

RAW_SCHEMA = "key BINARY, value BINARY, partition STRING, offset BIGINT, item BIGINT, timestamp TIMESTAMP, version INT"
"""A raw record: its bytes, its position (`item` numbers the files or ticks of the log), and the schema version that it
is stamped with, if any.

A dead letter without a value represents its whole item: a file that could not be read, named by `partition`."""

RAW_COLUMNS = ("key", "value", "partition", "offset", "item", "timestamp", "version")

ERROR, UNKNOWN, ROW, VERSION = "_error", "_unknown", "_row", "_version"
"""Decoded records are raw records with these columns: the reason why the record cannot be decoded (NULL if it can),
whether it has fields that are not in its schema, the row as a struct of the current schema (undefined if there is an
error), and the version that it was decoded with."""
PLACED = "__laminae_placed"
"""An additional column of rows, for a source that keeps its table: a struct of the row and its record's position."""
SHORT_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded records, and `wanted`: extends a schema by the fields and types that these records require."""

    records: DataFrame
    wanted: Callable[[pa.Schema], pa.Schema]


class Rows(Protocol):
    """The rows of an epoch. A consumer takes `frame`, or the plan of a template over them, once."""

    @property
    def is_bare(self) -> bool:
        """Whether nothing (such as an Observation) watches the rows, so that their plan may become part of another."""
        ...

    @property
    def are_short(self) -> bool:
        """Whether each row is from a record of at most `SHORT_BYTES`, so that their number alone bounds their size."""
        ...

    def frame(self) -> DataFrame: ...

    def under(self, template: Template) -> DataFrame:
        """The plan of a template over the rows, which must be bare."""
        ...


class QuickRows(Rows, Protocol):
    """The rows of a range from a fast path, valid if no record needs the full decoder.

    `refused` reports whether one does, once the rows have been written.
    """

    def refused(self) -> bool: ...

    def only_long(self) -> bool:
        """Whether every task that refused its records had one that is too long for this path.

        Length may then be the only reason for the refusal.
        """
        ...

    def count(self) -> int:
        """The number of rows, if none was refused."""
        ...


class Records(Protocol):
    """The raw records of a range, as a source hands them to a format: as a frame, or as the files that hold them."""

    @property
    def spark(self) -> SparkSession: ...

    def frame(self, columns: Sequence[str] = RAW_COLUMNS, boundaries: Collection[int] | None = None) -> DataFrame:
        """The raw records, with at least these columns of RAW_SCHEMA (and `MOVES`, where a source knows it).

        With `boundaries`, a record may have any item number that is on the same side of these items as its own.
        """
        ...

    def files(self) -> Sequence[FileEntry] | None:
        """The files that hold the records as they are; None if the records are not in such files."""
        ...

    def file_paths(self, columns: Sequence[str]) -> Sequence[str] | None:
        """The files under `frame`, if the frames of different ranges differ in nothing else; else None."""
        ...

    def planned(self, columns: Sequence[str]) -> object | None:
        """The RDD under `frame`, if the frames of different ranges differ in nothing else; else None."""
        ...


class RecordFormat(Protocol):
    """Decodes the records of one source into rows of its current schema. It knows no transport."""

    def decoded(self, records: Records, table: DecoderTable) -> Decoded:
        """Every record with its row or with the reason why it has none. Epochs, SELECT and backfill read through it."""
        ...

    def decoded_again(self, letters: DataFrame, table: DecoderTable, reopened: Records | None) -> Decoded:
        """Dead letters (RAW_SCHEMA) decoded again with the newest version of the table.

        `reopened` are the records of files that were dead letters as a whole, for sources whose items are files.
        """
        ...

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        """Whether `decoded` reads the records only once, regardless of the number of versions in the table."""
        ...

    def arrow_rows(self, records: Records, table: DecoderTable, are_short: bool) -> QuickRows | None:
        """The rows by Arrow in Python workers, the fastest path for plain text; None if it is not available.

        With `are_short`, a record of more than `SHORT_BYTES` needs the full decoder.
        """
        ...

    def fast_rows(self, records: Records, table: DecoderTable, fits: str | None) -> QuickRows | None:
        """The rows by a plan without reasons for refused records; None if there is none.

        `fits` is an SQL condition on the columns of a row: records whose rows do not satisfy it need the full decoder.
        """
        ...

    def make_ready(self, spark: SparkSession, table: DecoderTable, records: Records | None) -> None:
        """Prepare in advance what `fast_rows` needs for the first range read with this table. An optimisation only.

        `records` are those of a range that was read before, if ranges to come differ in nothing but their files.
        """
        ...

    def grown(self, records: Records, decoder: Decoder) -> pa.Schema | Refused:
        """For REFRESH SCHEMA: the decoder's schema plus what these records add to it, or why that cannot be found."""
        ...
