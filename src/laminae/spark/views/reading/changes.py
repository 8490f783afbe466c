"""CHANGES OF a relation as a DataFrame: `_epoch`, `_op`, `_weight`, `_timestamp` and the relation's columns.

Views, and sources that keep a table, have a changelog. The changes of any other source are read again from its log.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from laminae.catalog.model import SourceRecord
from laminae.engine.source_spec import spec_of
from laminae.errors import ChangelogExpired, QueryFailed
from laminae.spark.catalyst.types import spark_schema
from laminae.spark.source_tables.source_rows import source_changes
from laminae.spark.views.reading.changelog_files import FILE, changes_under
from laminae.spark.views.reading.relation import EPOCH, relation_schema
from laminae.views.planner import quoted
from laminae.zset.changelog import OP, TIMESTAMP, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import AdvanceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage

OWN = StructType().add(OP, StringType()).add(WEIGHT, LongType()).add(TIMESTAMP, TimestampType())


def kept_changes(catalog: Catalog, relation: SourceRecord | ViewRecord, since: int) -> tuple[AdvanceRecord, ...]:
    """The epochs after `since` that changed a relation; raises ChangelogExpired when one of them was removed."""
    known = catalog.advances(relation.id)
    gone = [advance.epoch for advance in known if advance.rows and not advance.files]
    if gone and since < gone[-1]:
        raise ChangelogExpired(view=relation.name, first=gone[-1], since=since)
    recent = tuple(advance for advance in known if advance.epoch > since)
    _refuse_renamed(relation.name, recent)
    return recent


def _refuse_renamed(name: str, advances: Sequence[AdvanceRecord]) -> None:
    """Raise if a column was renamed in these epochs.

    Changes are matched by column name: those before the rename would have NULL in that column, so that inserts and
    retractions would no longer cancel out.
    """
    newest = set(advances[-1].schema.names) if advances else set()
    for advance in reversed(advances):
        names = set(advance.schema.names)
        if names - newest and newest - names:
            gone = min(names - newest)
            problem = f"column {gone} of {name} has another name since epoch {advance.epoch}"
            raise QueryFailed(problem=f"{problem}: ask for the changes since then, or for its rows")


def changes_schema(
    spark: SparkSession, catalog: Catalog, storage: Storage, relation: SourceRecord | ViewRecord
) -> StructType:
    """The schema of a changelog that is still empty."""
    return StructType([*OWN.fields, *relation_schema(spark, catalog, relation.name).fields])


def relation_events(
    spark: SparkSession, catalog: Catalog, storage: Storage, relation: SourceRecord | ViewRecord, since: int = 0
) -> DataFrame:
    if isinstance(relation, SourceRecord) and not spec_of(relation).keeps_table:
        return _read_again(spark, catalog, storage, relation, since)
    advances = [advance for advance in kept_changes(catalog, relation, since) if advance.files]
    if not advances:
        empty = spark.createDataFrame([], changes_schema(spark, catalog, storage, relation))
        return empty.select(F.lit(None).cast("bigint").alias(EPOCH), "*")
    schema = advances[-1].schema
    # File names are unique, so the name of a file identifies its epoch.
    named = [(file.rpartition("/")[2], advance.epoch) for advance in advances for file in advance.files]
    epochs = spark.createDataFrame(named, f"{FILE} STRING, {EPOCH} BIGINT")
    rows = changes_under(spark, catalog, storage, relation, advances, schema)
    return rows.join(F.broadcast(epochs), FILE).select(EPOCH, *map(quoted, _in_order(spark_schema(schema))))


def _read_again(spark: SparkSession, catalog: Catalog, storage: Storage, source: SourceRecord, since: int) -> DataFrame:
    operation = F.when(F.col(WEIGHT) > 0, "+I").otherwise("-D").alias(OP)
    parts = [
        source_changes(spark, catalog, storage, source, record.epoch, record.epoch - 1).select(
            F.lit(record.epoch).cast("bigint").alias(EPOCH),
            operation,
            WEIGHT,
            F.lit(record.committed_at).alias(TIMESTAMP),
            *map(quoted, source.schema.names),
        )
        for record in catalog.epochs(source.id, since)
        if record.rows
    ]
    if parts:
        return reduce(DataFrame.unionAll, parts)
    epoch = StructType().add(EPOCH, LongType())
    return spark.createDataFrame([], StructType([*epoch.fields, *OWN.fields, *spark_schema(source.schema).fields]))


def _in_order(schema: StructType) -> Sequence[str]:
    own = [OP, WEIGHT, TIMESTAMP]
    return [*own, *(name for name in schema.names if name not in own)]
