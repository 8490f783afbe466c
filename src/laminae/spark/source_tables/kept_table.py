"""The common interface of the tables that sources keep, by primary key or, without one, as a multiset of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from laminae.engine.changelogs import keeps_bag
from laminae.spark.source_tables.keyed import keyed_table_of
from laminae.spark.source_tables.keyless import source_bag, source_bag_traces
from laminae.views.kernels.multiset.kernel import BAG
from laminae.views.kernels.upsert.keyed_table import TABLE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage
    from laminae.spark.source_tables.commit import Advance
    from laminae.spark.views.plan import ShardPlacement
    from laminae.trace.spec import TraceSpec


class KeptTable(Protocol):
    """The table of a source in one state."""

    @property
    def owner(self) -> int: ...

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, with an error set on those that the table cannot accept."""
        ...

    def placed(self) -> list[Column]:
        """The columns of decoded records that the table needs in addition to the row."""
        ...

    def advance(
        self, spark: SparkSession, records: DataFrame, placement: ShardPlacement, directory: str, are_short: bool
    ) -> Advance:
        """Run one job over the records of an epoch: the catalog updates to commit, and the changes for readers.

        `are_short` is that of `laminae.spark.formats.protocol.Rows`.
        """
        ...

    def rows(self, spark: SparkSession, home: str) -> DataFrame:
        """The rows in this state."""
        ...


def source_table_state(catalog: Catalog, storage: Storage, source: SourceRecord, until: int | None = None) -> KeptTable:
    """The table of a source as of an epoch; by default the last one."""
    if keeps_bag(source):
        return source_bag(catalog, source, str(storage.home), until)
    return keyed_table_of(catalog, source, until)


def source_table_traces(catalog: Catalog, source: SourceRecord, until: int | None = None) -> dict[str, list[TraceSpec]]:
    """The traces that the state of that table consists of, by operator name."""
    if keeps_bag(source):
        return {BAG: source_bag_traces(catalog, source, until)}
    return {TABLE: keyed_table_of(catalog, source, until).traces}
