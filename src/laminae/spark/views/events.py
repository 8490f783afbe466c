"""CHANGES OF a relation as a frame: `_epoch`, `_op`, `_weight`, `_timestamp`, and its columns, epoch by epoch.

A view and a source with a table by key have a changelog. Any other source is read again from its log.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from laminae.catalog.model import SourceRecord
from laminae.engine.changelogs import keeps_table
from laminae.errors import ChangelogExpired, QueryFailed
from laminae.spark.tables import source_changes
from laminae.spark.types import spark_schema
from laminae.spark.views.changelog_files import FILE, changes_under
from laminae.spark.views.reading import EPOCH, relation_table
from laminae.spark.views.tasks import TIMESTAMP
from laminae.views.kernels.changelog import OP, WEIGHT
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import AdvanceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage

OWN = StructType().add(OP, StringType()).add(WEIGHT, LongType()).add(TIMESTAMP, TimestampType())


def kept_changes(catalog: Catalog, relation: SourceRecord | ViewRecord, since: int) -> tuple[AdvanceRecord, ...]:
    """The epochs after `since` that changed a relation; ChangelogExpired when not all of them are kept."""
    known = catalog.advances(relation.id)
    gone = [each.epoch for each in known if each.rows and not each.files]
    if gone and since < gone[-1]:
        raise ChangelogExpired(view=relation.name, first=gone[-1], since=since)
    found = tuple(each for each in known if each.epoch > since)
    _refuse_renamed(relation.name, found)
    return found


def _refuse_renamed(name: str, advances: Sequence[AdvanceRecord]) -> None:
    """By names alone the changes before a rename would have NULL in that column, and never add up again."""
    newest = set(advances[-1].schema.names) if advances else set()
    for each in reversed(advances):
        names = set(each.schema.names)
        if names - newest and newest - names:
            gone = min(names - newest)
            told = f"column {gone} of {name} has another name since epoch {each.epoch}"
            raise QueryFailed(problem=f"{told}: ask for the changes since then, or for its rows")


def changes_schema(
    spark: SparkSession, catalog: Catalog, storage: Storage, relation: SourceRecord | ViewRecord
) -> StructType:
    """Of a changelog that is empty yet."""
    return StructType([*OWN.fields, *relation_table(spark, catalog, storage, relation.name).schema.fields])


def relation_events(
    spark: SparkSession, catalog: Catalog, storage: Storage, relation: SourceRecord | ViewRecord, since: int = 0
) -> DataFrame:
    if isinstance(relation, SourceRecord) and not keeps_table(relation):
        return _read_again(spark, catalog, storage, relation, since)
    advances = [each for each in kept_changes(catalog, relation, since) if each.files]
    if not advances:
        empty = spark.createDataFrame([], changes_schema(spark, catalog, storage, relation))
        return empty.select(F.lit(None).cast("bigint").alias(EPOCH), "*")
    schema = advances[-1].schema
    # The names of files are used once, so that of an epoch's file says the epoch.
    named = [(file.rpartition("/")[2], each.epoch) for each in advances for file in each.files]
    epochs = spark.createDataFrame(named, f"{FILE} STRING, {EPOCH} BIGINT")
    rows = changes_under(spark, catalog, storage, relation, advances, schema)
    return rows.join(F.broadcast(epochs), FILE).select(EPOCH, *map(quoted, _in_order(spark_schema(schema))))


def _read_again(spark: SparkSession, catalog: Catalog, storage: Storage, source: SourceRecord, since: int) -> DataFrame:
    operation = F.when(F.col(WEIGHT) > 0, "+I").otherwise("-D").alias(OP)
    parts = [
        source_changes(spark, catalog, storage, source, each.epoch, each.epoch - 1).select(
            F.lit(each.epoch).cast("bigint").alias(EPOCH),
            operation,
            WEIGHT,
            F.lit(each.committed_at).alias(TIMESTAMP),
            *map(quoted, source.schema.names),
        )
        for each in catalog.epochs(source.id, since)
        if each.rows
    ]
    if parts:
        return reduce(DataFrame.unionAll, parts)
    epoch = StructType().add(EPOCH, LongType())
    return spark.createDataFrame([], StructType([*epoch.fields, *OWN.fields, *spark_schema(source.schema).fields]))


def _in_order(schema: StructType) -> Sequence[str]:
    own = [OP, WEIGHT, TIMESTAMP]
    return [*own, *(name for name in schema.names if name not in own)]
