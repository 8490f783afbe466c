"""What a source is to the rest of the data plane: a numbered, durable log of raw records. It decodes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.errors import LaminaeError
    from laminae.spark.formats.fast_path import Planned
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.formats.protocol import RecordFormat, Records
    from laminae.spark.sources.files.listing import FileEntry

    OnProblem = Callable[[LaminaeError], None]


@dataclass(frozen=True, slots=True)
class LogRange:
    """A range of offsets from `start` (the exclusive end of the previous range) to `end`, as in Spark's offset log.

    `refused` are items that became dead letters as a whole when they were first read: only a replay reads them again.
    `broken` are items that Spark fails to read, with the reason: each becomes a dead letter as a whole.
    `only_left`: skip items that retention has removed; otherwise reading them raises.
    """

    start: str
    end: str
    refused: frozenset[int] = frozenset()
    broken: tuple[tuple[int, str], ...] = ()
    only_left: bool = False


@dataclass(frozen=True, slots=True)
class Outside:
    """The schema that an external table (Iceberg, Delta) has for a range.

    `schema_id` is its id there; `wanted` applies the external schema changes to a source's schema.
    """

    schema_id: int
    wanted: Callable[[pa.Schema], pa.Schema]


@dataclass(frozen=True, slots=True)
class ReopenedFiles:
    """Files that were dead letters as a whole, as they are now: those that can be read, and those still refused."""

    records: Records
    refused: Sequence[tuple[FileEntry, Refused]] = ()


class Source(Protocol):
    """The log of one source incarnation. Offsets are JSON texts; equal texts are equal offsets."""

    def initial(self) -> str:
        """The offset before the first record."""
        ...

    def latest(self) -> str:
        """The offset after the last record that is available now."""
        ...

    def problem(self) -> LaminaeError | None:
        """A warning about data that is not read, or has changed since it was read; it does not stop the source."""
        ...

    def item(self, offset: str) -> int:
        """The number of the first item at or after this offset. Schema versions are bound to item numbers."""
        ...

    def at(self, item: int) -> str:
        """The offset before this item."""
        ...

    def stream(self, spark: SparkSession, on_problem: OnProblem | None = None) -> DataFrame:
        """A streaming DataFrame whose offsets drive the epochs; its rows are never read.

        `on_problem` is called with the error that ends the stream.
        """
        ...

    def read(
        self, spark: SparkSession, span: LogRange, columns: Sequence[str], boundaries: Collection[int] | None = None
    ) -> DataFrame:
        """The raw records of a range (RAW_SCHEMA), with at least these columns.

        With `boundaries`, a record may have any item number that is on the same side of these items as its own.
        """
        ...

    def files(self, span: LogRange) -> Sequence[FileEntry] | None:
        """The files that hold the records of a range as they are; None if the records are not in such files."""
        ...

    def file_paths(self, span: LogRange, columns: Sequence[str]) -> Sequence[str] | None:
        """The files that `read` reads for a range, if ranges differ in nothing but their files; else None."""
        ...

    def planned(self, spark: SparkSession, span: LogRange) -> Planned:
        """A function from columns to the RDD under the frame that `read` returns for them, if ranges differ in nothing
        but that RDD; else to None.
        """
        ...

    def stamps_at_hand(self, span: LogRange) -> set[int]:
        """Schema versions that records of a range are stamped with, as far as known without reading them."""
        ...

    def outside(self, span: LogRange) -> Outside | None:
        """The external schema of this range; None if the source has no external schema or it did not change."""
        ...

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        """Items of a range that cannot be read, with the reason. Slow: call it only after a job has failed."""
        ...

    def broken_files(self, span: LogRange) -> Sequence[tuple[FileEntry, Refused]]:
        """The files of the range's broken items: each becomes one dead letter."""
        ...

    def reopened(self, letters: DataFrame) -> ReopenedFiles | None:
        """The files that dead letters without a value stand for; None if the source's items are not files."""
        ...

    def own_format(self) -> RecordFormat | None:
        """The format of a source that has its own, such as a lakehouse table; None: the option `format` says it."""
        ...
