"""The shapes that the parts of the data plane hand to each other: raw records, ranges of a log, decoded records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.errors import LaminaeError
    from laminae.spark.template import Template

    OnProblem = Callable[[LaminaeError], None]

RAW_SCHEMA = "key BINARY, value BINARY, partition STRING, offset BIGINT, item BIGINT, timestamp TIMESTAMP, version INT"
"""A raw record: its bytes, where it stands (`item` counts the log's files or ticks), and its stamp if it has one.

A dead letter without a value stands for its whole item: a file that could not be read, named by `partition`."""

RAW_COLUMNS = ("key", "value", "partition", "offset", "item", "timestamp", "version")

ERROR, UNKNOWN, ROW, VERSION = "_error", "_unknown", "_row", "_version"
"""Decoded records are raw records with these columns: the reason it cannot be decoded (NULL: it can), whether it has
fields that its schema does not know, the row as a struct of the current schema (of a record with an error it says
nothing), and the version it was read with."""
PLACED = "_placed"
"""Beside the columns of a row, for a source that keeps its table: a struct of that row and where its record stands."""
SHORT_BYTES = 8192


@dataclass(frozen=True, slots=True)
class LogRange:
    """From `start` (exclusive end of the range before) up to `end`, as the JSON texts of Spark's offset log.

    `refused` are items that became dead letters as a whole when they were first read: only a replay reads them again.
    `broken` are items that Spark fails to read, with the reason: each becomes a dead letter as a whole.
    """

    start: str
    end: str
    refused: frozenset[int] = frozenset()
    broken: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded records, and `wanted`: a schema grown to what these records ask for beyond it."""

    records: DataFrame
    wanted: Callable[[pa.Schema], pa.Schema]


@dataclass(frozen=True, slots=True)
class Outside:
    """What somebody outside says about the schema of a range: an id, and a source's schema after what changed there."""

    schema_id: int
    wanted: Callable[[pa.Schema], pa.Schema]


class Rows(Protocol):
    """Rows of an epoch on their way to a reader, which takes `frame`, or a template's plan upon them, once."""

    @property
    def is_bare(self) -> bool:
        """Whether nothing watches the rows as they pass, so that their plan may be taken into another."""
        ...

    @property
    def are_short(self) -> bool:
        """Whether each was made of a record of at most `SHORT_BYTES`, so that their number alone bounds their size."""
        ...

    def frame(self) -> DataFrame: ...

    def under(self, template: Template) -> DataFrame:
        """What a template makes of the rows; of bare ones alone."""
        ...


class QuickRows(Rows, Protocol):
    """The rows of a range if it has no record that needs a closer look; `refused` says so when they are written."""

    def refused(self) -> bool: ...

    def only_long(self) -> bool:
        """Whether each task that refused its records had one too long for this way: there may be no other reason."""
        ...

    def count(self) -> int:
        """How many there are, if none was refused."""
        ...


class SourceLog(Protocol):
    """The log of one source incarnation. Offsets are JSON texts, equal texts are equal offsets."""

    def initial(self) -> str:
        """The offset before the first record."""
        ...

    def latest(self) -> str:
        """The offset behind the last record that is there now."""
        ...

    def item(self, offset: str) -> int:
        """The number of the first item at or behind this offset: what schema versions are bound to."""
        ...

    def at(self, item: int) -> str:
        """The offset before this item."""
        ...

    def stamps(self, spark: SparkSession, span: LogRange, version_field: str | None) -> set[int]:
        """The versions that records of a range are stamped with, by the log or in a field of their own."""
        ...

    def stamps_at_hand(self, span: LogRange) -> set[int]:
        """Those of them that can be told without reading the records. It saves time, and decides nothing."""
        ...

    def outside(self, span: LogRange) -> Outside | None:
        """What is said outside about the schema of this range, None where nobody keeps one or nothing changed."""
        ...

    def stream(self, spark: SparkSession, on_problem: OnProblem | None = None) -> DataFrame:
        """A streaming DataFrame whose offsets drive the epochs; its rows are never read.

        `on_problem` is told in our words what ends it.
        """
        ...

    def decoded(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> Decoded:
        """The decoded records of a range: the one reading path of epochs, SELECT and backfill."""
        ...

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        """Items of a range that cannot be read, with the reason. It takes long: to be asked when a job has failed."""
        ...

    def chunked_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, are_short: bool = False
    ) -> QuickRows | None:
        """The rows of a long range of plain text by the shortest way, None where there is none.

        With `are_short` a record of more than `SHORT_BYTES` needs a closer look.
        """
        ...

    def quick_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, fits: str | None = None
    ) -> QuickRows | None:
        """The rows of a range by a shorter way than `decoded`, None where there is none.

        `fits` is a condition in SQL on the columns of a row: records whose rows are otherwise need a closer look.
        """
        ...

    def make_ready(self, spark: SparkSession, table: DecoderTable, like: LogRange | None) -> None:
        """Do ahead what `quick_rows` would do for the first range read with this table. It decides nothing.

        `like` is a range that was read before, for what such ranges have in common.
        """
        ...

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        """Dead letters of this log (RAW_SCHEMA) once more, as records of the newest version of the table."""
        ...
