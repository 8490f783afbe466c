"""The table that a source keeps, by its key or as a bag of rows: what an epoch and a reader ask of either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from laminae.engine.changelogs import keeps_bag
from laminae.spark.views.bags import source_bag, source_bag_traces
from laminae.spark.views.keyed import keyed_table_of
from laminae.views.kernels.bag import BAG
from laminae.views.kernels.keyed_table import TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.epochs import Way
    from laminae.spark.storage import Storage
    from laminae.spark.views.table_advance import Advance
    from laminae.spark.views.tree import Place
    from laminae.trace.spec import TraceSpec


class KeptTable(Protocol):
    """The table of a source in one state."""

    @property
    def owner(self) -> int: ...

    def ways(self, ways: Sequence[Way]) -> list[Way]:
        """Those of them that tell enough of a record."""
        ...

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, those that it cannot take with an error."""
        ...

    def placed(self) -> list[Column]:
        """What it needs of decoded records beside the row."""
        ...

    def advance(
        self, spark: SparkSession, records: DataFrame, place: Place, directory: str, are_short: bool
    ) -> Advance:
        """One job over the records of an epoch: what it asks the catalog to commit, and the changes for readers.

        `are_short` as of `laminae.spark.contract.Rows`.
        """
        ...

    def rows(self, spark: SparkSession, home: str) -> DataFrame:
        """The rows in this state."""
        ...


def source_table_state(catalog: Catalog, storage: Storage, source: SourceRecord, until: int | None = None) -> KeptTable:
    """The table of a source as of an epoch, the last one unless told."""
    if keeps_bag(source):
        return source_bag(catalog, source, str(storage.home), until)
    return keyed_table_of(catalog, source, until)


def source_table_traces(catalog: Catalog, source: SourceRecord, until: int | None = None) -> dict[str, list[TraceSpec]]:
    """What the state of that table is called, and what it consists of."""
    if keeps_bag(source):
        return {BAG: source_bag_traces(catalog, source, until)}
    return {TABLE: keyed_table_of(catalog, source, until).traces}
