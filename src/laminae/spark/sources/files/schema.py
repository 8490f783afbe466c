"""REFRESH SCHEMA of a files source: finds what its newest files have beyond the schema in force.

A column that is missing in the sampled files stays: other files may have it. Spark is started only for JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine.epochs.epoch_plan import decoder_table
from laminae.engine.evolution.inferred_fractions import without_rounding
from laminae.engine.ports import FoundSchema
from laminae.errors import InferenceFailed
from laminae.spark.formats.parquet.footers import Refused
from laminae.spark.sources.files.source import FileRecords, FilesSource
from laminae.spark.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog

MOST_FILES = 20


def open_finder(catalog: Catalog, home: Callable[[], str], spark: Callable[[], SparkSession]) -> FilesFinder:
    return FilesFinder(catalog, home, spark)


@dataclass(frozen=True, slots=True)
class FilesFinder:
    """`laminae.engine.ports.SchemaFinder` of the files connector; the first call of `spark` starts a session."""

    catalog: Catalog
    home: Callable[[], str]
    spark: Callable[[], SparkSession]

    def find(self, source: SourceRecord) -> FoundSchema:
        reader = open_source(source, self.home())
        assert isinstance(reader.source, FilesSource)  # this finder is that of the files connector
        versions = self.catalog.versions(source.id)[: source.version]
        decoder = decoder_table(source, versions, versions[-1:], first_item=0).decoders[-1]
        files = reader.source.newest(MOST_FILES)
        schema = reader.format.grown(FileRecords(self.spark, files), decoder) if files else Refused("it has no files")
        if isinstance(schema, Refused):
            raise InferenceFailed(source=source.name, problem=schema.reason)
        return FoundSchema(without_rounding(source.schema, schema))
