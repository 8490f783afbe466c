"""The contents of a checkpoint: its operators, schemas, row counts, and sample rows of each store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.spark.catalyst.hadoop_files import HadoopFiles
from laminae.spark.checkpoint.session import session_of
from laminae.spark.checkpoint.state_rows import FAMILY, raw_rows, row_counts, store_rows
from laminae.state.checkpoint.model import HDFS
from laminae.state.checkpoint.reading import read_checkpoint
from laminae.state.codec.decode import row_decoder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.state.checkpoint.model import Checkpoint, Family, Operator, Store


@dataclass(frozen=True, slots=True)
class FamilyContents:
    """One column family: its key and value schemas, its number of rows, and sample rows by field name."""

    operator: int
    operator_name: str
    store: str
    family: str
    partitions: int
    key: str
    value: str
    rows: int
    samples: tuple[tuple[object, object], ...]


@dataclass(frozen=True, slots=True)
class Contents:
    checkpoint: Checkpoint
    families: tuple[FamilyContents, ...]


def inspect_checkpoint(checkpoint: str, *, spark: SparkSession | None = None, samples: int = 3) -> Contents:
    """Read a checkpoint at its last committed batch. Nothing is written."""
    session = session_of(spark)
    files = HadoopFiles(session)
    stored = read_checkpoint(files, files.qualified(str(checkpoint)))
    counts = row_counts(session, stored)
    families = [
        FamilyContents(
            operator.id,
            operator.name,
            store.name,
            family.name,
            store.partitions,
            str(family.key),
            str(family.value),
            counts[operator.id, store.name, family.name],
            _samples(session, stored, operator, store, family, samples),
        )
        for operator in stored.operators
        for store in operator.stores
        for family in store.families
    ]
    return Contents(stored, tuple(families))


def _samples(
    spark: SparkSession, found: Checkpoint, operator: Operator, store: Store, family: Family, count: int
) -> tuple[tuple[object, object], ...]:
    place = (spark, found.location, operator.id, store.name, found.batch)
    if found.provider == HDFS:
        rows = store_rows(*place).select("key", "value").limit(count).collect()
        return tuple((row.key.asDict(True), row.value.asDict(True)) for row in rows)
    raw = raw_rows(*place)
    rows = raw.where(raw[FAMILY] == family.name).select("key_bytes", "value_bytes").limit(count).collect()
    key, value = row_decoder(family.key, named=True), row_decoder(family.value, named=True)
    return tuple((key(bytes(row[0])), None if row[1] is None else value(bytes(row[1]))) for row in rows)
