"""REFRESH SCHEMA of a files source: what its newest files have beyond the schema in force. Spark starts only for JSON.

A column that the sample lacks stays: a file without it says nothing about the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine.epochs import decoder_table
from laminae.engine.ports import FoundSchema
from laminae.errors import InferenceFailed
from laminae.spark.files.footers import Refused
from laminae.spark.infer import infer_schema
from laminae.spark.logs import open_log
from laminae.spark.logs.files import FilesLog, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.codec.decoders import Decoder
    from laminae.spark.logs.listing import FileEntry

MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class FilesFinder:
    """`laminae.engine.ports.SchemaFinder` of the files connector; `spark` starts a session when it is first asked."""

    catalog: Catalog
    home: str
    spark: Callable[[], SparkSession]

    def find(self, source: SourceRecord) -> FoundSchema:
        log = open_log(source, self.home)
        if not isinstance(log, FilesLog):
            # Of the files connector only envelopes have another log.
            raise InferenceFailed(source=source.name, problem="the rows inside Debezium's events are not looked at")
        versions = self.catalog.versions(source.id)[: source.version]
        decoder = decoder_table(source, versions, versions[-1:], first_item=0).decoders[-1]
        files = log.newest(MOST_FILES)
        found = Refused("it has no files yet") if not files else self._grown(log, files, decoder)
        if isinstance(found, Refused):
            raise InferenceFailed(source=source.name, problem=found.reason)
        return FoundSchema(found)

    def _grown(self, log: FilesLog, files: Sequence[FileEntry], decoder: Decoder) -> pa.Schema | Refused:
        if log.reader is not None:
            return log.reader.grown(files, decoder)
        former = [name for name, _ in decoder.aliases]
        return infer_schema(lines(self.spark(), files, ("value",)), decoder.schema, former)
