"""A source as a table: the same log, the same decoders, up to the last committed epoch. Also its dead letters.

A record that was refused when it was first read is refused again by the same decoder, so nothing needs to be left out;
what a replay put through is read from the dead letters that it took, with the schema it took them with.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.epochs import MOST_STAMPS, decoder_table, has_stamps, in_force, pieces
from laminae.engine.options import option
from laminae.spark.contract import ERROR, RAW_SCHEMA, ROW, LogRange
from laminae.spark.json_checks import REASONS
from laminae.spark.logs import open_log
from laminae.spark.types import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import EpochRecord, SourceRecord, VersionRecord
    from laminae.catalog.port import Catalog
    from laminae.codec.decoders import DecoderTable
    from laminae.spark.contract import Decoded, SourceLog
    from laminae.spark.storage import Storage

DEAD_LETTERS = (
    "source_name STRING, epoch BIGINT, partition STRING, offset BIGINT, value BINARY, version INT, reason STRING, "
    "timestamp TIMESTAMP, replayed_by BIGINT"
)
EPOCHS = pa.schema(
    [("segment", pa.string()), ("source_name", pa.string()), ("epoch", pa.int64()), ("replayed_by", pa.int64())]
)


def source_table(
    spark: SparkSession, catalog: Catalog, storage: Storage, source: SourceRecord, until: int | None = None
) -> DataFrame:
    """Every row of the source as of an epoch (its last committed one unless told), under its current schema."""
    epochs = [epoch for epoch in catalog.epochs(source.id) if until is None or epoch.epoch <= until]
    last = next((epoch for epoch in reversed(epochs) if not epoch.is_replay), None)
    if last is None:
        return spark.createDataFrame([], spark_schema(source.schema))
    versions = catalog.versions(source.id)[: source.version]
    log = open_log(source, str(storage.home))
    span = LogRange(log.initial(), last.end_offsets, _refused_items(storage, source, epochs))
    replays = (epoch for epoch in epochs if epoch.is_replay)
    parts = [_replayed(spark, catalog, storage, log, source, versions, epoch) for epoch in replays]
    strangers = _strangers(spark, storage, source, epochs)
    first = (_without(decoded, strangers) for decoded in _spans(spark, log, source, versions, span))
    return reduce(DataFrame.unionByName, map(_rows, [*first, *parts]))


def _strangers(
    spark: SparkSession, storage: Storage, source: SourceRecord, epochs: Sequence[EpochRecord]
) -> DataFrame | None:
    """Records whose stamp named no version when they were read. One of that number may have come since."""
    dead = [epoch for epoch in epochs if epoch.dead_letter_segment]
    if not dead or not has_stamps(source):
        return None
    letters = dead_letter_records(spark, storage, dead)
    return letters.where(F.col("reason").startswith(REASONS["version"])).select("item", "value").distinct()


def _without(decoded: Decoded, strangers: DataFrame | None) -> Decoded:
    if strangers is None:
        return decoded
    return replace(decoded, records=decoded.records.join(strangers, ["item", "value"], "left_anti"))


def _spans(
    spark: SparkSession, log: SourceLog, source: SourceRecord, versions: Sequence[VersionRecord], span: LogRange
) -> Iterator[Decoded]:
    """The range, cut where so many versions have begun to hold that one plan could not decode them all."""
    items = range(log.item(span.start), log.item(span.end))
    # A version without a place holds for what comes next; nothing that was read stands behind it.
    placed = [version for version in versions if version.position is not None]
    for part in pieces(versions, items):
        cut = replace(span, start=log.at(part.start), end=log.at(part.stop))
        wanted = in_force(placed or versions[:1], part)
        if has_stamps(source):
            wanted |= _stamps(spark, log, cut, source, versions)
        yield log.decoded(spark, cut, _table(source, versions, [v for v in versions if v.version in wanted]))


def _stamps(
    spark: SparkSession, log: SourceLog, span: LogRange, source: SourceRecord, versions: Sequence[VersionRecord]
) -> set[int]:
    """The versions that stamped records may have: all, or when these are many, those that occur."""
    if len(versions) <= MOST_STAMPS:
        return {version.version for version in versions}
    return log.stamps(spark, span, option(source.options, "version_field"))


def dead_letter_records(spark: SparkSession, storage: Storage, epochs: Sequence[EpochRecord]) -> DataFrame:
    """The raw records that these epochs set aside."""
    paths = [storage.path(epoch.dead_letter_segment) for epoch in epochs if epoch.dead_letter_segment]
    return spark.read.schema(f"{RAW_SCHEMA}, reason STRING").parquet(*paths)


def dead_letters(spark: SparkSession, catalog: Catalog, storage: Storage) -> DataFrame:
    """laminar_catalog.dead_letters: one scan, however many epochs have some."""
    found = [
        (source.name, epoch)
        for source in catalog.sources()
        for epoch in catalog.epochs(source.id)
        if epoch.dead_letter_segment is not None
    ]
    if not found:
        return spark.createDataFrame([], DEAD_LETTERS)
    known = pa.Table.from_pylist(
        [
            {
                "segment": (epoch.dead_letter_segment or "").rpartition("/")[2],
                "source_name": name,
                "epoch": epoch.epoch,
                "replayed_by": epoch.replayed_by,
            }
            for name, epoch in found
        ],
        EPOCHS,
    )
    letters = dead_letter_records(spark, storage, [epoch for _, epoch in found])
    segment = F.element_at(F.split("_metadata.file_path", "/"), -2).alias("segment")
    joined = letters.select("*", segment).join(F.broadcast(spark.createDataFrame(known)), "segment")
    return joined.select(*(name.split()[0] for name in DEAD_LETTERS.split(", ")))


def _replayed(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    log: SourceLog,
    source: SourceRecord,
    versions: Sequence[VersionRecord],
    replay: EpochRecord,
) -> Decoded:
    taken = [epoch for epoch in catalog.epochs(source.id) if epoch.replayed_by == replay.epoch]
    letters = dead_letter_records(spark, storage, taken).drop("reason")
    # A file that this replay refused again, and a later one read, must not be read here as it is now.
    refused = _refused_items(storage, source, [replay])
    if refused:
        letters = letters.where(F.col("value").isNotNull() | ~F.col("item").isin(*refused))
    return log.decoded_again(letters, _table(source, versions, versions[replay.version - 1 : replay.version]))


def _refused_items(storage: Storage, source: SourceRecord, epochs: Sequence[EpochRecord]) -> frozenset[int]:
    """Files that were dead letters as a whole: they may have been mended since, and then only a replay reads them."""
    if option(source.options, "connector") != "files":
        return frozenset()
    segments = [storage.path(epoch.dead_letter_segment) for epoch in epochs if epoch.dead_letter_segment]
    found = (pq.read_table(path, columns=["item"], filters=pc.field("value").is_null()) for path in segments)
    return frozenset(item for table in found for item in table["item"].to_pylist())


def _table(source: SourceRecord, versions: Sequence[VersionRecord], wanted: Sequence[VersionRecord]) -> DecoderTable:
    return replace(decoder_table(source, versions, wanted, first_item=None), finds_unknown_fields=False)


def _rows(decoded: Decoded) -> DataFrame:
    return decoded.records.where(F.col(ERROR).isNull()).select(f"{ROW}.*")
