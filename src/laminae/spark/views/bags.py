"""Sources that keep a table without a key: a bag of rows stands between their events and whoever reads.

An event takes the row before it out of the bag and puts the one after it in. The kernel is told the place of each: only
a truncation asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark_types

from laminae.engine.options import option
from laminae.schema.column import columns_of
from laminae.spark.change_events import EVENT, IGNORED, IN_BEFORE, OLD, TRUNCATE, is_unavailable
from laminae.spark.contract import ERROR, PLACED, ROW
from laminae.spark.expression import (
    FALSE,
    Expression,
    any_of,
    cases,
    column,
    first_text,
    literal,
    struct,
    when,
)
from laminae.spark.types import arrow_schema, arrow_type, spark_schema, spark_type
from laminae.spark.views.batches import WHATEVER, settle_batches
from laminae.spark.views.notes import StateNote, note_text
from laminae.spark.views.row_hash import has_map, row_hash, with_sorted_maps
from laminae.spark.views.table_advance import advance_of, notes_in
from laminae.spark.views.tasks import SHARD, Emit, note_rows, out_schema, own_shard, split, with_notes
from laminae.trace.manifest import Manifest
from laminae.trace.spec import HASH, WEIGHT
from laminae.trace.store import RunStore
from laminae.views.kernels import bag as bags
from laminae.views.kernels.bag import BAG, BASE, SHOWN, Bag, is_settled, kept_traces
from laminae.views.kernels.truncated_bag import (
    ITEM,
    LANE,
    OFFSET,
    SEQUENCE,
    effective,
    heard_trace,
    is_taken,
    lanes_of,
    places_of,
    remembered,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.epochs import Way
    from laminae.spark.views.table_advance import Advance
    from laminae.spark.views.tree import Place
    from laminae.trace.spec import TraceSpec
    from laminae.views.kernels import truncated_bag

KIND, CHANGE = "_kind", "_change"
CHANGED, CUT, IDLE, KEPT, SETTLED = "row", "cut", "idle", "base", "settled"
"""What a row tells a shard: a change of the bag, a truncation, an event that changes nothing, what was there before,
and that all of it comes anew."""
REASONS = {
    "value": " was not sent, as it did not change, and before does not have it either",
    "late": "this TRUNCATE came behind events that follow it: without a PRIMARY KEY it is known no more which rows it "
    "leaves",
    "partitions": ". Give the topic one partition",
}


@dataclass(frozen=True, slots=True)
class SourceBag:
    """The table of a source that has no key, and its state by shard. `fields` are named after the ids of columns.

    `lanes` are what its shards have heard. With `has_lanes` partitions of the source are in no order among each other.
    """

    owner: int
    name: str
    schema: pa.Schema
    fields: tuple[pa.Field, ...]
    has_lanes: bool
    expected: int
    manifests: Mapping[int, str]
    lanes: tuple[truncated_bag.Lane, ...]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """(name, name in the trace)."""
        return tuple((name, field.name) for name, field in zip(self.schema.names, self.fields, strict=True))

    @property
    def bag(self) -> Bag:
        return Bag(self.fields)

    @property
    def shown(self) -> pa.Schema:
        """The columns as Spark gives and takes them."""
        return pa.schema([field.with_nullable(True) for field in arrow_schema(spark_schema(self.schema))])

    def ways(self, ways: Sequence[Way]) -> list[Way]:
        """Events with both their rows are read one by one."""
        return []

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, with an error where a value is nowhere to be found, or a truncation comes too late."""
        op, row, old = column(EVENT).field("op"), column(ROW), column(OLD)
        reasons = []
        for name, kind in self._types.items():
            lacks, lacked = is_unavailable(row.field(name), kind), is_unavailable(old.field(name), kind)
            if lacks is None or lacked is None:
                continue
            reasons += [
                when(lacks & old.is_null(), literal(f"{name}{REASONS['value']}")),
                when(lacked, literal(f"{IN_BEFORE}{name}{REASONS['value']}")),
            ]
        if late := [test for lane in self.lanes for test in self._is_late(lane)]:
            is_late = op.compared("=", literal(TRUNCATE)) & any_of(late) & ~any_of(list(self._is_done()))
            advice = REASONS["partitions"] if self.has_lanes else ""
            reasons.append(when(is_late, literal(f"{REASONS['late']}{advice}")))
        return records.withColumn(ERROR, first_text([column(ERROR), *reasons]).column)

    def _is_late(self, lane: truncated_bag.Lane) -> Iterator[Expression]:
        """As `truncated_bag.is_late`."""
        if lane.newest is not None:
            yield self._is_before(lane.newest, "<")

    def _is_done(self) -> Iterator[Expression]:
        """As `is_covered` and `is_repeated` there."""
        for lane in self.lanes:
            if lane.cut is not None:
                yield self._is_before(lane.cut, "<=")
                yield column(EVENT).field("sequence").compared("=", lane.cut.sequence)

    def _is_before(self, place: truncated_bag.Place, sign: str) -> Expression:
        item, offset = column("item"), column("offset")
        is_earlier = item.compared("<", place.item) | (
            item.compared("=", place.item) & offset.compared("<", place.offset)
        )
        is_less = column(EVENT).field("sequence").compared(sign, place.sequence)
        return when(self._lane.compared("=", literal(place.lane)), is_earlier, is_less)

    def placed(self) -> list[Column]:
        """What the bag needs of decoded records beside the row."""
        return [F.struct(ROW, OLD, EVENT, "item", "offset", "partition").alias(PLACED)]

    def advance(
        self, spark: SparkSession, records: DataFrame, place: Place, directory: str, are_short: bool
    ) -> Advance:
        """One job over the records of an epoch: what it asks the catalog to commit, and the changes for readers.

        `are_short` as of `laminae.spark.contract.Rows`.
        """
        for name, value in WHATEVER.items():
            spark.conf.set(name, value)
        manifests = map(Manifest.from_json, self.manifests.values())
        is_anew = not all(is_settled(self.bag, manifest) for manifest in manifests)
        delta = self._delta(records, place)
        if is_anew:
            delta = delta.unionByName(self._base(spark, place), allowMissingColumns=True)
        frame = delta.repartitionById(place.shards, SHARD)
        emit = Emit(self.owner, place.home, directory, self.columns, None, place.time)
        stage = BagShard(self, place.home, emit, is_anew)
        settle_batches(frame.sparkSession, frame.schema)
        found = frame.mapInArrow(stage, spark_schema(stage.schema()))
        return advance_of(spark, (self.owner, self.name, self.expected), found, notes_in(found), place)

    def rows(self, spark: SparkSession, home: str) -> DataFrame:
        """Each row as often as it is there."""
        times = F.explode(F.expr(f"sequence(1L, {WEIGHT})")).alias(WEIGHT)
        found = self._kept(spark, home).where(F.col(WEIGHT) > 0)
        named = [F.col(stored).alias(name) for name, stored in self.columns]
        return found.select(*named, times).drop(WEIGHT)

    def _kept(self, spark: SparkSession, home: str) -> DataFrame:
        """What is kept of rows, with `_weight`, under the columns of now."""
        rows = BagRows(self, home)
        shards = max(self.manifests, default=0) + 1
        return spark.range(0, shards, 1, shards).mapInArrow(rows, spark_schema(rows.schema))

    @property
    def _types(self) -> dict[str, spark_types.DataType]:
        return {name: spark_type(kind) for name, kind in zip(self.schema.names, self.schema.types, strict=True)}

    @property
    def _lane(self) -> Expression:
        return column("partition") if self.has_lanes else literal("")

    def _delta(self, records: DataFrame, place: Place) -> DataFrame:
        """A row for each change, each with its place."""
        op = column(EVENT).field("op")
        nothing = when(FALSE, column(ROW)).sql
        shards = f"sequence(0, {place.shards - 1})"
        change = "named_struct('shard', {}, 'kind', '{}', 'weight', {}L, 'data', {})".format
        one = change("CAST(NULL AS INT)", CHANGED, -1, column(OLD).sql)
        other = change("CAST(NULL AS INT)", CHANGED, 1, self._filled().sql)
        changes = cases(
            [
                (
                    op.compared("=", literal(TRUNCATE)),
                    Expression(f"transform({shards}, s -> {change('s', CUT, 0, nothing)})"),
                ),
                (op.is_one_of(IGNORED), Expression(f"array({change('0', IDLE, 0, nothing)})")),
            ],
            Expression(f"filter(array({one}, {other}), change -> change.data IS NOT NULL)"),
        )
        own = [
            f"explode({changes.sql}) AS {CHANGE}",
            f"{self._lane.sql} AS {LANE}",
            f"item AS {ITEM}",
            f"offset AS {OFFSET}",
            f"{column(EVENT).field('sequence').sql} AS {SEQUENCE}",
        ]
        row = column(CHANGE).field("data")
        stored = [f"{row.field(name).sql} AS {kept}" for name, kept in self.columns]
        told = [f"{CHANGE}.shard AS {SHARD}", f"{CHANGE}.kind AS {KIND}", f"{CHANGE}.weight AS {WEIGHT}"]
        found = records.selectExpr(*own).selectExpr(*told, LANE, ITEM, OFFSET, SEQUENCE, *stored)
        return self._sharded(found, place)

    def _filled(self) -> Expression:
        """The row after an event, a value that did not change and was not sent as it was before."""
        row, old = column(ROW), column(OLD)
        columns = []
        for name, kind in self._types.items():
            lacks = is_unavailable(row.field(name), kind)
            value = row.field(name)
            columns.append((name, value if lacks is None else when(lacks, old.field(name), value)))
        return when(row.is_there(), struct(columns))

    def _base(self, spark: SparkSession, place: Place) -> DataFrame:
        """Every row that is kept, for the shard that it belongs to now; and a word to all of them, also without one."""
        weights = [f"{WEIGHT} AS {BASE}", f"greatest({WEIGHT}, 0L) AS {SHOWN}", f"0L AS {WEIGHT}"]
        stored = [kept for _, kept in self.columns]
        rows = self._kept(spark, place.home).selectExpr(
            *stored, *weights, f"'{KEPT}' AS {KIND}", f"CAST(NULL AS INT) AS {SHARD}"
        )
        word = spark.range(place.shards).selectExpr(f"CAST(id AS INT) AS {SHARD}", f"'{SETTLED}' AS {KIND}")
        return self._sharded(rows, place).unionByName(word, allowMissingColumns=True)

    def _sharded(self, rows: DataFrame, place: Place) -> DataFrame:
        types = dict(zip((stored for _, stored in self.columns), self._types.values(), strict=True))
        maps = {name: with_sorted_maps(column(name), kind) for name, kind in types.items() if has_map(kind)}
        sorted_rows = rows.withColumns({name: value.column for name, value in maps.items()})
        shard = F.expr(f"coalesce({SHARD}, CAST(pmod({HASH}, {place.shards}) AS INT))")
        return sorted_rows.withColumn(HASH, row_hash(types).column).withColumn(SHARD, shard)


def source_bag(catalog: Catalog, source: SourceRecord, home: str, until: int | None = None) -> SourceBag:
    """The table of a source without a key as of an epoch, the last one unless told."""
    manifests = {each.shard: each.manifest for each in catalog.manifests(source.id, until)}
    store = RunStore.at(home)
    return SourceBag(
        owner=source.id,
        name=source.name,
        schema=source.schema,
        fields=_fields(source),
        has_lanes=option(source.options, "connector") == "kafka",
        expected=catalog.last_advance(source.id),
        manifests=manifests,
        lanes=lanes_of((Manifest.from_json(text), store) for text in manifests.values()),
    )


def source_bag_traces(catalog: Catalog, source: SourceRecord, until: int | None = None) -> list[TraceSpec]:
    """What its state as of an epoch consists of. No file is read."""
    manifests = [Manifest.from_json(each.manifest) for each in catalog.manifests(source.id, until)]
    return [*kept_traces(Bag(_fields(source)), manifests), heard_trace()]


@dataclass(frozen=True, slots=True, eq=False)
class BagShard:
    """The changes of an epoch that belong to one shard of a bag; `is_anew`: what was there before comes with them."""

    table: SourceBag
    home: str
    emit: Emit
    is_anew: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        data, _ = split(batches)
        if data is None or not data.num_rows:
            return
        owner, shard, lanes = self.table.owner, own_shard(data), self.table.lanes
        store = RunStore.at(self.home, f"state/{owner}/{BAG}/{shard}")
        found = self.table.manifests.get(shard)
        before = Manifest() if found is None else Manifest.from_json(found)
        truncations = places_of(_of_kind(data, CUT))
        cuts = effective(truncations, lanes)
        events = _of_kind(data, CHANGED)
        former = [lane.cut for lane in lanes if lane.cut is not None]
        taken = events.filter(pa.array(is_taken(events, [*former, *cuts])))
        base = _of_kind(data, KEPT) if self.is_anew else None
        step = bags.step(self.table.bag, taken, before, store, base, bool(cuts))
        manifest = remembered(step.manifest, store, lanes, taken, cuts)
        idle = _of_kind(data, IDLE).num_rows + (len(truncations) - len(cuts) if shard == 0 else 0)
        note = StateNote(
            owner,
            BAG,
            shard,
            manifest.to_json(),
            anomalies=step.counts.anomalies,
            recovered=step.counts.recovered,
            dropped=events.num_rows - taken.num_rows + idle,
        )
        rows, written = self.emit(pa.Table.from_batches([step.changes]), shard)
        yield from with_notes(rows, self.schema())
        yield from note_rows(map(note_text, (note, *written)), self.schema())

    def schema(self) -> pa.Schema:
        return out_schema(self.table.shown, timed=True)


@dataclass(frozen=True, slots=True, eq=False)
class BagRows:
    """What a bag keeps, shard by shard, with `_weight`; the batches that come in name the shards."""

    table: SourceBag
    home: str

    @property
    def schema(self) -> pa.Schema:
        named = zip(self.table.shown, self.table.fields, strict=True)
        return pa.schema([*(field.with_name(kept.name) for field, kept in named), pa.field(WEIGHT, pa.int64())])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store, schema = RunStore.at(self.home), self.schema
        for shard in (shard for batch in batches for shard in batch.column(0).to_pylist()):
            if shard in self.table.manifests:
                manifest = Manifest.from_json(self.table.manifests[shard])
                for found in bags.rows(self.table.bag, manifest, store):
                    yield from pa.table(found.columns, names=schema.names).cast(schema).to_batches()


def _of_kind(data: pa.Table, kind: str) -> pa.Table:
    return data.filter(pc.equal(data.column(KIND), kind))


def _fields(source: SourceRecord) -> tuple[pa.Field, ...]:
    named = zip(source.schema, columns_of(source.schema), strict=True)
    return tuple(field.with_name(f"c{node.id}").with_type(_kept_type(field.type)) for field, node in named)


def _kept_type(kind: pa.DataType) -> pa.DataType:
    return kind if pa.types.is_nested(kind) else arrow_type(spark_type(kind))
