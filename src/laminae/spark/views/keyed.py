"""Sources that keep a table by primary key: an operator of their own stands between their records and whoever reads.

The kernel is told the place of every record in its log: the number of its item, then its offset there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.codec.event_lines import DELETE
from laminae.engine.changelogs import DEBEZIUM, changelog_of, field_of, key_of
from laminae.engine.epochs import Way
from laminae.schema.column import columns_of
from laminae.spark.change_events import BETWEEN, EVENT, IGNORED, INSERT, TRUNCATE, WITH_ROW, unavailable_columns
from laminae.spark.contract import ERROR, PLACED, ROW
from laminae.spark.expression import column, first_text, literal, when
from laminae.spark.types import arrow_schema, arrow_type, spark_schema, spark_type
from laminae.spark.views.batches import OF_SHORT_ROWS, WHATEVER, settle_batches
from laminae.spark.views.grouping import canonical_key
from laminae.spark.views.notes import StateNote, note_text
from laminae.spark.views.table_advance import advance_of, notes_in
from laminae.spark.views.tasks import SHARD, Emit, note_rows, out_schema, own_shard, split, with_notes
from laminae.trace.manifest import Manifest
from laminae.trace.spec import HASH
from laminae.trace.store import RunStore
from laminae.trace.values import gathered, integers
from laminae.views.kernels import upsert
from laminae.views.kernels.keyed_table import (
    DELETED,
    KEPT,
    MOVED,
    MOVES,
    ORDER,
    SEQUENCE,
    TABLE,
    KeyedTable,
    moved_trace,
    table_trace,
    truncated_trace,
)
from laminae.views.kernels.moved import HOME, with_old_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.views.table_advance import Advance
    from laminae.spark.views.tree import Place
    from laminae.trace.run import Run
    from laminae.trace.spec import TraceSpec
    from laminae.zset.wide import Int64s

ITEM, OFFSET = "item", "offset"
EVENT_OP = "_event_op"
NULL_KEY = "{name} is NULL and part of the PRIMARY KEY"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The table of a source: how it is kept, and its state by shard. `fields` are named after the ids of columns.

    So neither a rename nor a name that the kernel uses itself matters to what is stored.
    """

    owner: int
    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    sequence_by: str | None
    deleted_by: str | None
    has_events: bool
    expected: int
    manifests: Mapping[int, str]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """(name, name in the trace)."""
        return tuple((name, field.name) for name, field in zip(self.schema.names, self.fields, strict=True))

    @property
    def keyed(self) -> KeyedTable:
        stored = dict(self.columns)
        order = None if self.sequence_by is None else self.fields[self.schema.names.index(self.sequence_by)].type
        if self.has_events:
            order = pa.int64()
        return KeyedTable(tuple(stored[name] for name in self.key), self.fields, order, self.has_events)

    @property
    def shown(self) -> pa.Schema:
        """The columns as Spark gives and takes them."""
        return pa.schema([field.with_nullable(True) for field in arrow_schema(spark_schema(self.schema))])

    @property
    def traces(self) -> list[TraceSpec]:
        keyed = self.keyed
        others = [] if keyed.sequence is None else [truncated_trace(keyed.sequence), moved_trace(keyed)]
        return [table_trace(keyed), *others]

    def ways(self, ways: Sequence[Way]) -> list[Way]:
        """Events that are read many at once have beside them where they stand."""
        return [way for way in ways if way is not Way.QUICK and self.has_events]

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, those without a whole key with an error."""
        reasons = [when(column(ROW).field(name).is_null(), literal(NULL_KEY.format(name=name))) for name in self.key]
        if self.has_events:
            has_row = ~column(EVENT).field("op").is_one_of([TRUNCATE, *IGNORED])
            reasons = [when(has_row, reason) for reason in reasons]
        found = first_text([column(ERROR), *reasons])
        return records.withColumn(ERROR, found.column)

    def placed(self) -> list[Column]:
        """What the table needs of decoded records beside the row."""
        return [F.struct(ROW, ITEM, OFFSET, *([EVENT] if self.has_events else [])).alias(PLACED)]

    def advance(
        self, spark: SparkSession, records: DataFrame, place: Place, directory: str, are_short: bool
    ) -> Advance:
        """One job over the records of an epoch: what it asks the catalog to commit, and the changes for readers.

        `are_short` as of `laminae.spark.contract.Rows`.
        """
        for name, value in (OF_SHORT_ROWS if are_short else WHATEVER).items():
            spark.conf.set(name, value)
        if not are_short:
            settle_batches(spark, records.schema)
        found = table_delta(self, records, place, directory)
        notes = notes_in(found)
        if any(isinstance(note, StateNote) and note.moved for note in notes):
            found = table_delta(self, records, place, directory, is_spread=True)
            notes = notes_in(found)
        return advance_of(spark, (self.owner, self.name, self.expected), found, notes, place)

    def rows(self, spark: SparkSession, home: str) -> DataFrame:
        """The rows of the table in this state."""
        shards = max(self.manifests, default=0) + 1
        return spark.range(0, shards, 1, shards).mapInArrow(TableRows(self, home), spark_schema(self.shown))


def keyed_table_of(catalog: Catalog, source: SourceRecord, until: int | None = None) -> SourceTable:
    """The table of a source that has a key as of an epoch, the last one unless told."""
    versions, has_events = catalog.versions(source.id), changelog_of(source.options) == DEBEZIUM
    fields = tuple(
        field.with_name(f"c{node.id}").with_type(_kept_type(field.type))
        for field, node in zip(source.schema, columns_of(source.schema), strict=True)
    )
    return SourceTable(
        owner=source.id,
        name=source.name,
        schema=source.schema,
        key=key_of(source),
        fields=fields,
        sequence_by=None if has_events else field_of(source, versions, "sequence_by"),
        deleted_by=field_of(source, versions, "deleted_by"),
        has_events=has_events,
        expected=catalog.last_advance(source.id),
        manifests={each.shard: each.manifest for each in catalog.manifests(source.id, until)},
    )


def table_delta(
    table: SourceTable, records: DataFrame, place: Place, directory: str, is_spread: bool = False
) -> DataFrame:
    """What these records change of the table, written to `directory` as it passes.

    With `is_spread` every shard is given all events, those of others to look into; else only what it must know of them.
    """
    types = {name: spark_type(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)}
    row = {name: column(ROW).field(name).sql for name in types}
    keys = [canonical_key(row[name], types[name]) for name in table.key]
    hashed = ", ".join(keys)
    deleted = "FALSE" if table.deleted_by is None else f"COALESCE({row[table.deleted_by]}, FALSE)"
    shard = f"CAST(pmod(hash({hashed}), {place.shards}) AS INT)"
    own = [f"xxhash64({hashed}) AS {HASH}", ITEM, OFFSET]
    if table.has_events:
        op = column(EVENT).field("op").sql
        moves = column(EVENT).field("moves").sql
        # Every shard must know of a truncation, and where a row arrived that one of them remembers.
        all_shards = f"WHEN {op} = '{TRUNCATE}' OR {op} = '{INSERT}' AND {moves} THEN sequence(0, {place.shards - 1})"
        is_ignored = f"{op} IN ({', '.join(literal(each).sql for each in IGNORED)})"
        others = f"sequence(0, {place.shards - 1})" if is_spread else f"array({shard})"
        own += [
            f"explode(CASE {all_shards} WHEN {is_ignored} THEN array(0) ELSE {others} END) AS {SHARD}",
            f"{shard} AS {HOME}",
            f"{op} = '{DELETE}' AS {DELETED}",
            f"{column(EVENT).field('sequence').sql} AS {SEQUENCE}",
            f"{op} AS {EVENT_OP}",
            f"{moves} AS {MOVES}",
            f"{unavailable_columns([(column(ROW).field(name), kind) for name, kind in types.items()]).sql} AS {KEPT}",
        ]
    else:
        own += [f"{shard} AS {SHARD}", f"{deleted} AS {DELETED}"]
    if table.sequence_by is not None:
        own.append(f"{row[table.sequence_by]} AS {SEQUENCE}")
    columns = [f"{row[name]} AS {stored}" for name, stored in table.columns]
    frame = records.selectExpr(*own, *columns).repartitionById(place.shards, SHARD)
    emit = Emit(table.owner, place.home, directory, table.columns, table.key, place.time)
    stage = UpsertShard(table, place.home, emit, is_spread)
    return frame.mapInArrow(stage, spark_schema(stage.schema()))


@dataclass(frozen=True, slots=True, eq=False)
class UpsertShard:
    """The records of an epoch that belong to one shard of a source's table."""

    table: SourceTable
    home: str
    emit: Emit
    is_spread: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        data, _ = split(batches)
        if data is None or not data.num_rows:
            return
        owner, shard = self.table.owner, own_shard(data)
        store = RunStore.at(self.home, f"state/{owner}/{TABLE}/{shard}")
        found = self.table.manifests.get(shard)
        before = Manifest() if found is None else Manifest.from_json(found)
        data, moved = _with_lists(_in_order(data)), 0
        arrived = _arrived(data) if self.table.has_events else upsert.NOTHING
        if self.table.has_events:
            data, moved = self._own(data, shard)
        events = _events(data)
        step = upsert.step(self.table.keyed, events.rows, before, store, events.truncate_at, arrived)
        note = StateNote(
            owner,
            TABLE,
            shard,
            step.manifest.to_json(),
            anomalies=step.counts.anomalies,
            dropped=step.counts.dropped + events.ignored,
            moved=moved,
        )
        rows, written = self.emit(pa.Table.from_batches([step.changes]), shard)
        yield from with_notes(rows, self.schema())
        yield from note_rows(map(note_text, (note, *written)), self.schema())

    def schema(self) -> pa.Schema:
        return out_schema(self.table.shown, timed=True)

    def _own(self, data: pa.Table, shard: int) -> tuple[pa.Table, int]:
        """The events of this shard, and how many of them are inserts that lack a value of the row under its old key."""
        ops = data.column(EVENT_OP)
        lacks = pc.and_(pc.equal(ops, INSERT), pc.is_valid(data.column(KEPT)))
        has_row, at_home = pc.is_in(ops, pa.array(WITH_ROW)), pc.equal(data.column(HOME), shard)
        moved = pc.sum(pc.and_(lacks, at_home)).as_py() or 0
        if moved:
            # Also where no header told, such an insert is one of a row that moved.
            moves = pc.or_(data.column(MOVES), lacks)
            data = data.set_column(data.schema.get_field_index(MOVES), MOVES, moves)
        if moved and self.is_spread:
            rest = data.filter(pc.invert(has_row))
            events = with_old_values(self.table.keyed, data.filter(has_row), self._runs(TABLE), self._runs(MOVED))
            return pa.concat_tables([events.filter(pc.equal(events.column(HOME), shard)), rest]), 0
        is_own = pc.or_(at_home, pc.invert(has_row))
        return (data if pc.all(is_own).as_py() else data.filter(is_own)), moved

    def _runs(self, trace: str) -> list[Run]:
        """Of all shards, before this epoch."""
        store, manifests = RunStore.at(self.home), map(Manifest.from_json, self.table.manifests.values())
        return [store.open(run) for manifest in manifests for run in manifest.runs(trace)]


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """The rows of a source's table, shard by shard; the batches that come in name the shards."""

    table: SourceTable
    home: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shown = self.table.shown
        store = RunStore.at(self.home)
        for shard in (shard for batch in batches for shard in batch.column(0).to_pylist()):
            if shard in self.table.manifests:
                manifest = Manifest.from_json(self.table.manifests[shard])
                for found in upsert.rows(self.table.keyed, manifest, store):
                    yield from pa.table(found.columns, names=shown.names).cast(shown).to_batches()


def _with_lists(data: pa.Table) -> pa.Table:
    """The records with the columns that they lack as numbers."""
    if KEPT not in data.column_names:
        return data
    numbers = pc.split_pattern(data.column(KEPT), BETWEEN).cast(pa.list_(pa.int32()))
    return data.set_column(data.schema.get_field_index(KEPT), KEPT, numbers)


def _arrived(data: pa.Table) -> Int64s:
    """The places of inserts, also of other shards, whose rows come from other keys."""
    is_insert = pc.equal(data.column(EVENT_OP), INSERT)
    comes = pc.or_(data.column(MOVES), pc.is_valid(data.column(KEPT)))
    return integers(gathered(data.filter(pc.and_(is_insert, comes)).column(SEQUENCE), pa.int64()))


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """The records that have a row, how many were to be ignored, and the last truncation, by what orders events."""

    rows: pa.Table
    ignored: int = 0
    truncate_at: pa.Scalar | None = None


def _events(data: pa.Table) -> _Events:
    if EVENT_OP not in data.column_names:
        return _Events(data)
    ops = data.column(EVENT_OP)
    cuts, idle = pc.equal(ops, TRUNCATE), pc.is_in(ops, pa.array(IGNORED))
    latest = pc.max(data.filter(cuts).column(SEQUENCE))
    rows = data.filter(pc.invert(pc.or_(cuts, idle))).drop_columns([EVENT_OP, HOME])
    return _Events(rows, pc.sum(idle).as_py() or 0, latest if latest.is_valid else None)


def _in_order(data: pa.Table) -> pa.Table:
    """The records with their order, which is that of their places in the log."""
    places = pc.sort_indices(data, sort_keys=[(ITEM, "ascending"), (OFFSET, "ascending")])
    order = np.empty(data.num_rows, dtype=np.int64)
    order[np.asarray(places)] = np.arange(data.num_rows)
    return data.drop_columns([SHARD, ITEM, OFFSET]).append_column(ORDER, pa.array(order))


def _kept_type(kind: pa.DataType) -> pa.DataType:
    return kind if pa.types.is_nested(kind) else arrow_type(spark_type(kind))
