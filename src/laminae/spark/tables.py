"""A source as a table: the same log, the same decoders, up to the last committed epoch. Also its dead letters.

Every record is judged under the schema that its epoch had, so what was refused then is refused again, and what was a
row is one, whatever the schema has become; what a replay put through is read from the dead letters that it took.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.changelogs import is_retract, keeps_table
from laminae.engine.epochs import DEAD_LETTER, MOST_STAMPS, decoder_table, has_stamps, in_force, pieces, refuse_alike
from laminae.engine.heads import has_writers
from laminae.engine.options import FILE_CONNECTORS, option
from laminae.engine.writers import as_of
from laminae.schema.projection import projection_between
from laminae.spark.contract import ERROR, RAW_SCHEMA, ROW, LogRange
from laminae.spark.expression import column
from laminae.spark.logs import open_log
from laminae.spark.paths import literal_path
from laminae.spark.project import keeps_every_column, project_columns
from laminae.spark.types import spark_schema
from laminae.spark.views.future import future_limit
from laminae.spark.views.source_tables import source_table_state
from laminae.spark.views.weights import net_rows, weights_of
from laminae.trace.spec import WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import EpochRecord, SourceRecord, VersionRecord, WriterRecord
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
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    source: SourceRecord,
    until: int | None = None,
    since: int = 0,
) -> DataFrame:
    """Every row of the source as of an epoch (its last committed one unless told), under its current schema.

    With `since` only those of later epochs. Of a source that keeps its table, by key or as a bag, they are the rows of
    that, and of one that takes rows back those that are left.
    """
    if keeps_table(source):
        return source_table_state(catalog, storage, source, until).rows(spark, str(storage.home))
    if is_retract(source):
        return net_rows(source_changes(spark, catalog, storage, source, until, since))
    return _records(spark, catalog, storage, source, until, since)


def source_changes(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    source: SourceRecord,
    until: int | None = None,
    since: int = 0,
) -> DataFrame:
    """The same for a source that keeps no table, record by record: rows with `_weight`."""
    rows = _records(spark, catalog, storage, source, until, since)
    weights = weights_of(source, catalog.versions(source.id))
    return rows.withColumn(WEIGHT, F.lit(1).cast("bigint")) if weights is None else weights.changes(rows)


def _records(
    spark: SparkSession, catalog: Catalog, storage: Storage, source: SourceRecord, until: int | None, since: int
) -> DataFrame:
    known = [epoch for epoch in catalog.epochs(source.id) if until is None or epoch.epoch <= until]
    epochs = [epoch for epoch in known if epoch.epoch > since]
    versions, writers = catalog.versions(source.id), catalog.writers(source.id) if has_writers(source.options) else ()
    reading = _Reading(spark, storage, source, versions, open_log(source, str(storage.home)), writers)
    parts = [*reading.batches(epochs), *reading.replays(epochs, known)]
    if not parts:
        return spark.createDataFrame([], spark_schema(source.schema))
    return reduce(DataFrame.unionByName, parts)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The log of a source read again: every epoch under its own version, so that it refuses what it refused."""

    spark: SparkSession
    storage: Storage
    source: SourceRecord
    versions: Sequence[VersionRecord]
    log: SourceLog
    writers: Sequence[WriterRecord] = ()

    def batches(self, epochs: Sequence[EpochRecord]) -> Iterator[DataFrame]:
        refused = _refused_items(self.storage, self.source, epochs)
        batches = [epoch for epoch in epochs if not epoch.is_replay]
        for alike in self._alike(batches):
            past = self._as_of(alike[-1].version)
            span = LogRange(alike[0].start_offsets, alike[-1].end_offsets, refused)
            for decoded in self._spans(past, span, alike[-1].epoch):
                yield self._rows(past, decoded)

    def replays(self, epochs: Sequence[EpochRecord], known: Sequence[EpochRecord]) -> Iterator[DataFrame]:
        """`known` are all that may have dead letters which these epochs have taken."""
        for replay in epochs:
            taken = [epoch for epoch in known if epoch.replayed_by == replay.epoch]
            if replay.is_replay and taken:
                past = self._as_of(replay.version)
                letters = dead_letter_records(self.spark, self.storage, taken).drop("reason")
                # A file that this replay refused again, and a later one read, must not be read here as it is now.
                refused = _refused_items(self.storage, self.source, [replay])
                if refused:
                    letters = letters.where(F.col("value").isNotNull() | ~F.col("item").isin(*refused))
                newest = self.versions[replay.version - 1 : replay.version]
                yield self._rows(past, self.log.decoded_again(letters, self._table(past, newest, replay.epoch)))

    def _alike(self, batches: Sequence[EpochRecord]) -> Iterator[list[EpochRecord]]:
        """Neighbouring epochs whose versions refuse the same records are read as one."""
        found: list[EpochRecord] = []
        for epoch in batches:
            if found and not self._are_alike(found, epoch):
                yield found
                found = []
            found.append(epoch)
        if found:
            yield found

    def _are_alike(self, found: Sequence[EpochRecord], epoch: EpochRecord) -> bool:
        if has_writers(self.source.options):
            # A column that a version has taken on since is read of the records behind it alone.
            return found[-1].version == epoch.version and self._reads_alike(found[-1].epoch, epoch.epoch)
        return found[-1].version == epoch.version or self._join(found, epoch)

    def _reads_alike(self, one: int, other: int) -> bool:
        """Whether every schema id that the earlier epoch knew means the same to the later one."""
        later = {writer.schema_id: writer for writer in as_of(self.writers, other)}
        return all(later[writer.schema_id] is writer for writer in as_of(self.writers, one))

    def _join(self, found: Sequence[EpochRecord], epoch: EpochRecord) -> bool:
        # A stamp or a field of a version to come was refused, and would not be by a later version.
        refuses_news = has_stamps(self.source) or option(self.source.options, "on_rejected") == DEAD_LETTER
        if refuses_news and any(each.dead_letters for each in found):
            return False
        return refuse_alike(self._schema(found[-1].version), self._schema(epoch.version))

    def _spans(self, past: SourceRecord, span: LogRange, epoch: int) -> Iterator[Decoded]:
        """The range, cut where so many versions have begun to hold that one plan could not decode them all."""
        known = self.versions[: past.version]
        items = range(self.log.item(span.start), self.log.item(span.end))
        for part in pieces(known, items):
            cut = replace(span, start=self.log.at(part.start), end=self.log.at(part.stop))
            wanted = in_force(known, part)
            if has_stamps(past):
                wanted |= self._stamps(cut, known)
            versions = [version for version in known if version.version in wanted]
            yield self.log.decoded(self.spark, cut, self._table(past, versions, epoch))

    def _stamps(self, span: LogRange, known: Sequence[VersionRecord]) -> set[int]:
        """The versions that stamped records may have: all, or when these are many, those that occur."""
        if len(known) <= MOST_STAMPS:
            return {version.version for version in known}
        return self.log.stamps(self.spark, span, option(self.source.options, "version_field"))

    def _as_of(self, version: int) -> SourceRecord:
        return replace(self.source, version=version, schema=self._schema(version))

    def _schema(self, version: int) -> pa.Schema:
        return self.versions[version - 1].schema

    def _table(self, past: SourceRecord, wanted: Sequence[VersionRecord], epoch: int) -> DecoderTable:
        writers = as_of(self.writers, epoch)
        table = decoder_table(past, self.versions[: past.version], wanted, None, writers)
        return replace(table, finds_unknown_fields=table.refuses_unknown)

    def _rows(self, past: SourceRecord, decoded: Decoded) -> DataFrame:
        """What was a row then, under the current schema. It stays one, even where the schema has become stricter."""
        weights = weights_of(past, self.versions)
        limit = future_limit(past)
        records = decoded.records if limit is None else limit.judged(decoded.records)
        records = records if weights is None else weights.judged(records)
        rows = records.where(F.col(ERROR).isNull()).select(f"{ROW}.*")
        projection = projection_between(past.schema, self.source.schema)
        if keeps_every_column(projection):
            return rows
        names = past.schema.names
        columns = project_columns(projection, lambda index: column(names[index]))
        return rows.select(*(value.column.alias(name) for name, value in columns))


def dead_letter_records(spark: SparkSession, storage: Storage, epochs: Sequence[EpochRecord]) -> DataFrame:
    """The raw records that these epochs set aside."""
    paths = [storage.path(epoch.dead_letter_segment) for epoch in epochs if epoch.dead_letter_segment]
    return spark.read.schema(f"{RAW_SCHEMA}, reason STRING").parquet(*map(literal_path, paths))


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


def _refused_items(storage: Storage, source: SourceRecord, epochs: Sequence[EpochRecord]) -> frozenset[int]:
    """Files that were dead letters as a whole: they may have been mended since, and then only a replay reads them."""
    if option(source.options, "connector") not in FILE_CONNECTORS:
        return frozenset()
    segments = [storage.path(epoch.dead_letter_segment) for epoch in epochs if epoch.dead_letter_segment]
    found = (pq.read_table(path, columns=["item"], filters=pc.field("value").is_null()) for path in segments)
    return frozenset(item for table in found for item in table["item"].to_pylist())
