"""Reads a source as a table: the same log and decoders as its epochs, up to the last committed one; also dead letters.

Every record is decoded under the schema version of its epoch, so that the same records are refused and accepted as
then, whatever the schema is now. Records that a replay accepted are read from the dead letters that it replayed.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.model import READING
from laminae.codec.decoders import Judged
from laminae.engine.epochs.epoch_plan import MOST_STAMPS, decoder_table, in_force, pieces, refuse_alike
from laminae.engine.epochs.version_runs import are_judged_together, can_share
from laminae.engine.source_spec import spec_of
from laminae.engine.writer_schemas.binding import as_of
from laminae.schema.projection import projection_between
from laminae.spark.catalyst.expression import column
from laminae.spark.catalyst.paths import literal_path
from laminae.spark.catalyst.types import spark_schema
from laminae.spark.formats.projection import keeps_every_column, project_columns
from laminae.spark.formats.protocol import ERROR, RAW_SCHEMA, ROW
from laminae.spark.source_tables.future_rows import future_limit
from laminae.spark.source_tables.kept_table import source_table_state
from laminae.spark.source_tables.retractions import net_rows, weights_of
from laminae.spark.sources.protocol import LogRange
from laminae.spark.sources.registry import open_source
from laminae.trace.spec import WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import EpochRecord, SourceRecord, VersionRecord, WriterRecord
    from laminae.catalog.port import Catalog
    from laminae.codec.decoders import DecoderTable
    from laminae.spark.driver.storage import Storage
    from laminae.spark.formats.protocol import Decoded
    from laminae.spark.sources.reader import SourceReader

DEAD_LETTERS = (
    "source_name STRING, epoch BIGINT, partition STRING, offset BIGINT, value BINARY, version INT, reason STRING, "
    "timestamp TIMESTAMP, replayed_by BIGINT"
)
RECORD = ("item", "partition", "offset", "value")
"""The columns that identify a raw record."""
KNOWN = "_was_refused"
NOT_AS_THEN = "a record of source {source} was a row when an older version of laminae read it, and is refused now"
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
    """Every row of the source as of an epoch (by default its last committed one), under its current schema.

    With `since` only the rows of later epochs. A source that keeps a table, by key or as a multiset, returns the rows
    of that table; a source with retractions returns the rows that remain.
    """
    if spec_of(source).keeps_table:
        return source_table_state(catalog, storage, source, until).rows(spark, str(storage.home))
    if spec_of(source).is_retract:
        return net_rows(source_changes(spark, catalog, storage, source, until, since))
    return _records(spark, catalog, storage, source, until, since)


def source_changes(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    source: SourceRecord,
    until: int | None = None,
    since: int = 0,
    only_left: bool = False,
) -> DataFrame:
    """The records of a source that keeps no table, as rows with `_weight`; `until` and `since` as in `source_table`.

    `only_left`: records that retention has removed are skipped; otherwise reading them raises.
    """
    rows = _records(spark, catalog, storage, source, until, since, only_left)
    weights = weights_of(source, catalog.versions(source.id))
    return rows.withColumn(WEIGHT, F.lit(1).cast("bigint")) if weights is None else weights.changes(rows)


def _records(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    source: SourceRecord,
    until: int | None,
    since: int,
    only_left: bool = False,
) -> DataFrame:
    known = [epoch for epoch in catalog.epochs(source.id) if until is None or epoch.epoch <= until]
    epochs = [epoch for epoch in known if epoch.epoch > since]
    versions, writers = catalog.versions(source.id), catalog.writers(source.id) if spec_of(source).has_writers else ()
    log = open_source(_skipping(source) if only_left else source, str(storage.home))
    waited = frozenset(epoch.epoch for epoch in epochs if epoch.waits_for is not None)
    old = frozenset(epoch.epoch for epoch in epochs if epoch.reading < READING)
    reading = _Reading(spark, storage, source, versions, log, writers, only_left, waited, old)
    parts = [*reading.batches(epochs), *reading.replays(epochs, known)]
    if not parts:
        return spark.createDataFrame([], spark_schema(source.schema))
    return reduce(DataFrame.unionByName, parts)


def _skipping(source: SourceRecord) -> SourceRecord:
    """The source with `on_data_loss = skip`: records that a Kafka broker has removed are skipped."""
    if "on_data_loss" not in spec_of(source).connector.options:
        return source
    return replace(source, options=tuple(sorted({**dict(source.options), "on_data_loss": "skip"}.items())))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads the log of a source again, every epoch under its schema version, so that it refuses the same records.

    `waited` are epochs that set aside records with new fields until a schema change was confirmed. `old` are epochs
    whose values were parsed by the rules of an older laminae version.
    """

    spark: SparkSession
    storage: Storage
    source: SourceRecord
    versions: Sequence[VersionRecord]
    log: SourceReader
    writers: Sequence[WriterRecord] = ()
    only_left: bool = False
    waited: frozenset[int] = frozenset()
    old: frozenset[int] = frozenset()

    def batches(self, epochs: Sequence[EpochRecord]) -> Iterator[DataFrame]:
        refused = _refused_items(self.storage, self.source, epochs)
        batches = [epoch for epoch in epochs if not epoch.is_replay]
        is_shared = self._is_shared()
        for alike in self._alike(batches, is_shared):
            past = self._as_of(alike[-1].version)
            span = LogRange(alike[0].start_offsets, alike[-1].end_offsets, refused, only_left=self.only_left)
            is_old = alike[-1].epoch in self.old
            is_at_once = is_shared and not is_old
            spans = [self._at_once(past, span, alike)] if is_at_once else self._spans(past, span, alike[-1].epoch)
            for decoded in spans:
                yield self._rows(past, self._as_then(decoded, alike) if is_old else decoded)

    def replays(self, epochs: Sequence[EpochRecord], known: Sequence[EpochRecord]) -> Iterator[DataFrame]:
        """Rows of the replays among `epochs`. `known` are all epochs whose dead letters these may have replayed."""
        for replay in epochs:
            taken = [epoch for epoch in known if epoch.replayed_by == replay.epoch]
            if replay.is_replay and taken:
                past = self._as_of(replay.version)
                letters = dead_letter_records(self.spark, self.storage, taken).drop("reason")
                # A file that this replay refused and a later one accepted must not be read here with its new content.
                refused = _refused_items(self.storage, self.source, [replay])
                if refused:
                    letters = letters.where(F.col("value").isNotNull() | ~F.col("item").isin(*refused))
                newest = self.versions[replay.version - 1 : replay.version]
                yield self._rows(past, self.log.decoded_again(letters, self._table(past, newest, replay.epoch)))

    def _is_shared(self) -> bool:
        """Whether one decoder can read the records of all versions."""
        table = self._table(self.source, self.versions[: self.source.version], 0)
        return can_share(table) and self.log.decodes_in_one_plan(table)

    def _alike(self, batches: Sequence[EpochRecord], is_shared: bool) -> Iterator[list[EpochRecord]]:
        """Groups of consecutive epochs that are read as one range, because their versions refuse the same records.

        A decoder shared by all versions checks each record by the rules of its own epoch.
        """
        group: list[EpochRecord] = []
        for epoch in batches:
            if group and not self._are_alike(group, epoch, is_shared):
                yield group
                group = []
            group.append(epoch)
        if group:
            yield group

    def _as_then(self, decoded: Decoded, epochs: Sequence[EpochRecord]) -> Decoded:
        """Raises on a record that these epochs accepted and that is refused now: it would silently be missing."""
        taken = [epoch for epoch in epochs if epoch.dead_letters]
        if any(epoch.dead_letter_segment is None for epoch in taken):
            # Retention has removed the dead letters, so it is unknown which records were refused then.
            return decoded
        records, is_new = decoded.records, F.col(ERROR).isNotNull()
        if taken:
            letters = dead_letter_records(self.spark, self.storage, taken).select(*RECORD, F.lit(True).alias(KNOWN))
            same = reduce(operator.and_, (records[name].eqNullSafe(letters[name]) for name in RECORD))
            records = records.join(F.broadcast(letters.distinct()), same, "left").drop(*(letters[n] for n in RECORD))
            is_new &= F.col(KNOWN).isNull()
        problem = F.concat(F.lit(f"{NOT_AS_THEN.format(source=self.source.name)}: "), F.col(ERROR))
        error = F.when(is_new, F.raise_error(problem).cast("string")).otherwise(F.col(ERROR))
        return replace(decoded, records=records.withColumn(ERROR, error))

    def _are_alike(self, found: Sequence[EpochRecord], epoch: EpochRecord, is_shared: bool) -> bool:
        if (found[-1].epoch in self.old) != (epoch.epoch in self.old):
            return False
        if self.waited and (found[-1].epoch in self.waited) != (epoch.epoch in self.waited):
            return False
        if found[-1].epoch in self.waited and found[-1].version != epoch.version:
            return False
        if spec_of(self.source).has_writers:
            # A column that a later version added is read only from records after that version.
            return found[-1].version == epoch.version and self._reads_alike(found[-1].epoch, epoch.epoch)
        if found[-1].version == epoch.version:
            return True
        if is_shared and epoch.epoch not in self.old:
            return are_judged_together(self._schema(found[-1].version), self._schema(epoch.version))
        return self._join(found, epoch)

    def _reads_alike(self, one: int, other: int) -> bool:
        """Whether every schema id known in the earlier epoch resolves to the same writer schema in the later one."""
        later = {writer.schema_id: writer for writer in as_of(self.writers, other)}
        return all(later[writer.schema_id] is writer for writer in as_of(self.writers, one))

    def _join(self, found: Sequence[EpochRecord], epoch: EpochRecord) -> bool:
        # A version stamp or a field that was unknown then was refused, but a later version would accept it.
        refuses_news = spec_of(self.source).has_stamps or spec_of(self.source).refuses_unknown
        if refuses_news and any(record.dead_letters for record in found):
            return False
        return refuse_alike(self._schema(found[-1].version), self._schema(epoch.version))

    def _at_once(self, past: SourceRecord, span: LogRange, alike: Sequence[EpochRecord]) -> Decoded:
        known = self.versions[: past.version]
        items = range(self.log.source.item(span.start), self.log.source.item(span.end))
        wanted = {version.version for version in known} if spec_of(past).has_stamps else in_force(known, items)
        table = self._table(past, [version for version in known if version.version in wanted], alike[-1].epoch)
        first_of = {epoch.version: epoch for epoch in reversed(alike)}
        if len(first_of) > 1:
            judged = [
                Judged(self.log.source.item(epoch.start_offsets), version, self._schema(version))
                for version, epoch in sorted(first_of.items())
            ]
            table = replace(table, judged=tuple(judged))
        return self.log.decoded(self.spark, span, table)

    def _spans(self, past: SourceRecord, span: LogRange, epoch: int) -> Iterator[Decoded]:
        """The range, split where it has too many schema versions for one plan."""
        known = self.versions[: past.version]
        items = range(self.log.source.item(span.start), self.log.source.item(span.end))
        for part in pieces(known, items):
            cut = replace(span, start=self.log.source.at(part.start), end=self.log.source.at(part.stop))
            wanted = in_force(known, part)
            if spec_of(past).has_stamps:
                wanted |= self._stamps(cut, known)
            versions = [version for version in known if version.version in wanted]
            yield self.log.decoded(self.spark, cut, self._table(past, versions, epoch))

    def _stamps(self, span: LogRange, known: Sequence[VersionRecord]) -> set[int]:
        """The versions that stamped records may have: all, or, if there are many, those that occur in the range."""
        if len(known) <= MOST_STAMPS:
            return {version.version for version in known}
        return self.log.stamps(self.spark, span, spec_of(self.source).version_field)

    def _as_of(self, version: int) -> SourceRecord:
        return replace(self.source, version=version, schema=self._schema(version))

    def _schema(self, version: int) -> pa.Schema:
        return self.versions[version - 1].schema

    def _table(self, past: SourceRecord, wanted: Sequence[VersionRecord], epoch: int) -> DecoderTable:
        writers = as_of(self.writers, epoch)
        table = decoder_table(past, self.versions[: past.version], wanted, None, writers)
        refuses = table.refuses_unknown or epoch in self.waited
        is_exact = epoch not in self.old
        return replace(table, finds_unknown_fields=refuses, refuses_unknown=refuses, exact_times=is_exact)

    def _rows(self, past: SourceRecord, decoded: Decoded) -> DataFrame:
        """The records that were accepted then, projected to the current schema, even if that has become stricter."""
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
    """The raw records that these epochs refused."""
    paths = [storage.path(epoch.dead_letter_segment) for epoch in epochs if epoch.dead_letter_segment]
    return spark.read.schema(f"{RAW_SCHEMA}, reason STRING").parquet(*map(literal_path, paths))


def dead_letters(spark: SparkSession, catalog: Catalog, storage: Storage) -> DataFrame:
    """The sources' part of laminar_catalog.dead_letters, in one scan for all epochs."""
    epochs = [
        (source.name, epoch)
        for source in catalog.sources()
        for epoch in catalog.epochs(source.id)
        if epoch.dead_letter_segment is not None
    ]
    if not epochs:
        return spark.createDataFrame([], DEAD_LETTERS)
    known = pa.Table.from_pylist(
        [
            {
                "segment": (epoch.dead_letter_segment or "").rpartition("/")[2],
                "source_name": name,
                "epoch": epoch.epoch,
                "replayed_by": epoch.replayed_by,
            }
            for name, epoch in epochs
        ],
        EPOCHS,
    )
    letters = dead_letter_records(spark, storage, [epoch for _, epoch in epochs])
    segment = F.element_at(F.split("_metadata.file_path", "/"), -2).alias("segment")
    joined = letters.select("*", segment).join(F.broadcast(spark.createDataFrame(known)), "segment")
    return joined.select(*(name.split()[0] for name in DEAD_LETTERS.split(", ")))


def _refused_items(storage: Storage, source: SourceRecord, epochs: Sequence[EpochRecord]) -> frozenset[int]:
    """Files that were refused as a whole. They may have been repaired since; only a replay reads them again."""
    if not spec_of(source).connector.items_are_files:
        return frozenset()
    segments = [storage.path(epoch.dead_letter_segment) for epoch in epochs if epoch.dead_letter_segment]
    tables = (pq.read_table(path, columns=["item"], filters=pc.field("value").is_null()) for path in segments)
    return frozenset(item for table in tables for item in table["item"].to_pylist())
