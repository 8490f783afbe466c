"""The shapes that the parts of the data plane hand to each other: raw records, ranges of a log, decoded records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAW_SCHEMA = "key BINARY, value BINARY, partition STRING, offset BIGINT, item BIGINT, timestamp TIMESTAMP, version INT"
"""A raw record: its bytes, where it stands (`item` counts the log's files or ticks), and its stamp if it has one."""

ERROR, UNKNOWN, ROW = "_error", "_unknown", "_row"
"""Decoded records are raw records with these columns: the reason it cannot be decoded (NULL: it can), whether it has
fields that its schema does not know, and the row as a struct of the current schema."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """From `start` (exclusive end of the range before) up to `end`, as the JSON texts of Spark's offset log."""

    start: str
    end: str


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

    def stream(self, spark: SparkSession) -> DataFrame:
        """A streaming DataFrame whose offsets drive the epochs; its rows are never read."""
        ...

    def read(self, spark: SparkSession, span: LogRange) -> DataFrame:
        """The raw records of a range (RAW_SCHEMA): the one reading path of epochs, SELECT, backfill and replay."""
        ...
