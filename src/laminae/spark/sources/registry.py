"""Opens sources: from a row in the table of connectors (`engine/options/connectors.py`) to a reader of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from laminae.engine.options.connectors import refuse_unknown
from laminae.engine.source_spec import spec_of
from laminae.spark.formats.registry import imported, open_format
from laminae.spark.sources.reader import SourceReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.ports import SchemaFinder
    from laminae.spark.sources.protocol import Source


def open_source(source: SourceRecord, home: str) -> SourceReader:
    """The log of this incarnation of the source, with the format of its records."""
    connector = spec_of(source).connector
    refuse_unknown(connector, source.name)
    opened = cast("Source", imported(connector.opener)(source, home))
    return SourceReader(opened, opened.own_format() or open_format(source))


def open_finder(
    source: SourceRecord, catalog: Catalog, home: Callable[[], str], spark: Callable[[], SparkSession]
) -> SchemaFinder:
    """What finds the schema that a source has outside, for REFRESH SCHEMA."""
    finder = spec_of(source).connector.finder
    assert finder is not None  # the engine asks for a finder only if the table names one
    return cast("SchemaFinder", imported(finder)(catalog, home, spark))
