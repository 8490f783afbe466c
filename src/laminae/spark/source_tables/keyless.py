"""Sources that keep a table without a primary key: a multiset ("bag") of rows turns their events into changes.

An event removes its before row from the multiset and adds its after row. The kernel receives the log position of each
event, which matters only for truncations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark_types

from laminae.engine.source_spec import spec_of
from laminae.schema.column import columns_of
from laminae.spark.catalyst.expression import (
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
from laminae.spark.catalyst.plans.prepared_frame import map_in_arrow
from laminae.spark.catalyst.types import spark_schema, spark_type
from laminae.spark.formats.debezium.events import EVENT, IGNORED, IN_BEFORE, OLD, TRUNCATE, is_unavailable
from laminae.spark.formats.protocol import ERROR, PLACED, ROW
from laminae.spark.source_tables.commit import advance_of, kept_type, reports_in, shown_schema
from laminae.spark.source_tables.row_hash import has_map, row_hash, with_sorted_maps
from laminae.spark.tasks.arrow_batches import DEFAULT_LIMITS, limit_batches
from laminae.spark.tasks.emit import Emit
from laminae.spark.tasks.shard_task import INPUT, SHARD, OperatorState, ShardRows, ShardTask
from laminae.trace.manifest import Manifest
from laminae.trace.spec import HASH, WEIGHT
from laminae.trace.store import RunStore
from laminae.views.kernels.multiset import kernel as multiset
from laminae.views.kernels.multiset.kernel import (
    BAG,
    BASE,
    CHANGED,
    COMPLETE,
    SHOWN,
    STORED,
    TRUNCATED,
    Multiset,
    MultisetKernel,
    has_current_columns,
)
from laminae.views.kernels.multiset.truncation import ITEM, OFFSET, PARTITION, SEQUENCE, progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.source_tables.commit import Advance
    from laminae.spark.views.plan import ShardPlacement
    from laminae.trace.spec import TraceSpec
    from laminae.views.kernels.multiset import truncation

CHANGE = "_change"
REASONS = {
    "value": " is unchanged and was not sent, and before does not contain it either",
    "late": "this TRUNCATE arrived after later events: without a PRIMARY KEY the remaining rows cannot be determined",
    "partitions": ". Use one partition for the topic",
}


@dataclass(frozen=True, slots=True)
class KeylessTable:
    """The table of a source without a key, and its state by shard. `fields` are named after column ids.

    `partitions` has, per partition, the last position, the highest sequence and the last truncation that the shards
    have processed. With `has_partitions` the positions of events in different partitions cannot be compared.
    """

    owner: int
    name: str
    schema: pa.Schema
    fields: tuple[pa.Field, ...]
    has_partitions: bool
    expected: int
    manifests: Mapping[int, str]
    partitions: tuple[truncation.PartitionProgress, ...]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """(name, name in the trace)."""
        return tuple((name, field.name) for name, field in zip(self.schema.names, self.fields, strict=True))

    @property
    def bag(self) -> Multiset:
        return Multiset(self.fields)

    @property
    def shown(self) -> pa.Schema:
        """The columns in the types in which Spark passes them to tasks and back."""
        return shown_schema(self.schema)

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, with an error set where a value is in neither before nor after, or a truncation is late."""
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
        if late := [test for partition in self.partitions for test in self._is_late(partition)]:
            is_late = op.compared("=", literal(TRUNCATE)) & any_of(late) & ~any_of(list(self._is_done()))
            advice = REASONS["partitions"] if self.has_partitions else ""
            reasons.append(when(is_late, literal(f"{REASONS['late']}{advice}")))
        return records.withColumn(ERROR, first_text([column(ERROR), *reasons]).column)

    def _is_late(self, partition: truncation.PartitionProgress) -> Iterator[Expression]:
        """The same test as `truncation.is_late`, as a Spark expression."""
        if partition.newest is not None:
            yield self._is_before(partition.newest, "<")

    def _is_done(self) -> Iterator[Expression]:
        """The same tests as `truncation.is_covered` and `truncation.is_repeated`, as Spark expressions."""
        for partition in self.partitions:
            if partition.cut is not None:
                yield self._is_before(partition.cut, "<=")
                yield column(EVENT).field("sequence").compared("=", partition.cut.sequence)

    def _is_before(self, position: truncation.EventPosition, sign: str) -> Expression:
        item, offset = column("item"), column("offset")
        is_earlier = item.compared("<", position.item) | (
            item.compared("=", position.item) & offset.compared("<", position.offset)
        )
        is_less = column(EVENT).field("sequence").compared(sign, position.sequence)
        return when(self._partition.compared("=", literal(position.partition)), is_earlier, is_less)

    def placed(self) -> list[Column]:
        """The columns of decoded records that the multiset needs in addition to the row."""
        return [F.struct(ROW, OLD, EVENT, "item", "offset", "partition").alias(PLACED)]

    def advance(
        self, spark: SparkSession, records: DataFrame, placement: ShardPlacement, directory: str, are_short: bool
    ) -> Advance:
        """Run one job over the records of an epoch: the catalog updates to commit, and the changes for readers.

        `are_short` is that of `laminae.spark.formats.protocol.Rows`.
        """
        for name, value in DEFAULT_LIMITS.items():
            spark.conf.set(name, value)
        manifests = map(Manifest.from_json, self.manifests.values())
        is_anew = not all(has_current_columns(self.bag, manifest) for manifest in manifests)
        delta = self._delta(records, placement)
        if is_anew:
            delta = delta.unionByName(self._base(spark, placement), allowMissingColumns=True)
        frame = delta.repartitionById(placement.shards, SHARD)
        emit = Emit(self.owner, placement.home, directory, self.columns, None, placement.time)
        kernel = MultisetKernel(self.bag, self.partitions, is_anew)
        task = ShardTask(kernel, self._state(placement.home), self._output, emit, fails_alone=False)
        limit_batches(frame.sparkSession, frame.schema)
        changes = map_in_arrow(frame, task, spark_schema(task.schema()))
        return advance_of(
            spark, (self.owner, self.name, self.expected), self.schema, changes, reports_in(changes), placement
        )

    def rows(self, spark: SparkSession, home: str) -> DataFrame:
        """The rows of the table, each repeated by its weight."""
        times = F.explode(F.expr(f"sequence(1L, {WEIGHT})")).alias(WEIGHT)
        rows = self._kept(spark, home).where(F.col(WEIGHT) > 0)
        named = [F.col(stored).alias(name) for name, stored in self.columns]
        return rows.select(*named, times).drop(WEIGHT)

    def _kept(self, spark: SparkSession, home: str) -> DataFrame:
        """The stored rows with `_weight`, under the current columns."""
        schema = pa.schema([*self._output, pa.field(WEIGHT, pa.int64())])
        rows = ShardRows(MultisetKernel(self.bag), self._state(home), schema)
        shards = max(self.manifests, default=0) + 1
        return map_in_arrow(spark.range(0, shards, 1, shards), rows, spark_schema(schema))

    def _state(self, home: str) -> OperatorState:
        return OperatorState(self.owner, BAG, home, self.manifests)

    @property
    def _output(self) -> tuple[pa.Field, ...]:
        """The columns under their names in the trace, in the types in which tasks pass them to Spark."""
        return tuple(field.with_name(stored.name) for field, stored in zip(self.shown, self.fields, strict=True))

    @property
    def _types(self) -> dict[str, spark_types.DataType]:
        return {name: spark_type(kind) for name, kind in zip(self.schema.names, self.schema.types, strict=True)}

    @property
    def _partition(self) -> Expression:
        return column("partition") if self.has_partitions else literal("")

    def _delta(self, records: DataFrame, placement: ShardPlacement) -> DataFrame:
        """One row per change, with the log position of its event."""
        op = column(EVENT).field("op")
        nothing = when(FALSE, column(ROW)).sql
        shards = f"sequence(0, {placement.shards - 1})"
        change = "named_struct('shard', {}, 'input', {}, 'weight', {}L, 'data', {})".format
        one = change("CAST(NULL AS INT)", CHANGED, -1, column(OLD).sql)
        other = change("CAST(NULL AS INT)", CHANGED, 1, self._filled().sql)
        changes = cases(
            [
                (
                    op.compared("=", literal(TRUNCATE)),
                    Expression(f"transform({shards}, s -> {change('s', TRUNCATED, 0, nothing)})"),
                ),
                (op.is_one_of(IGNORED), Expression(f"array({change('0', multiset.IGNORED, 0, nothing)})")),
            ],
            Expression(f"filter(array({one}, {other}), change -> change.data IS NOT NULL)"),
        )
        own = [
            f"explode({changes.sql}) AS {CHANGE}",
            f"{self._partition.sql} AS {PARTITION}",
            f"item AS {ITEM}",
            f"offset AS {OFFSET}",
            f"{column(EVENT).field('sequence').sql} AS {SEQUENCE}",
        ]
        row = column(CHANGE).field("data")
        stored = [f"{row.field(name).sql} AS {stored_name}" for name, stored_name in self.columns]
        placed = [f"{CHANGE}.shard AS {SHARD}", f"{CHANGE}.input AS {INPUT}", f"{CHANGE}.weight AS {WEIGHT}"]
        frame = records.selectExpr(*own).selectExpr(*placed, PARTITION, ITEM, OFFSET, SEQUENCE, *stored)
        return self._sharded(frame, placement)

    def _filled(self) -> Expression:
        """The after row of an event; unchanged values that Debezium did not send are taken from the before row."""
        row, old = column(ROW), column(OLD)
        columns = []
        for name, kind in self._types.items():
            lacks = is_unavailable(row.field(name), kind)
            value = row.field(name)
            columns.append((name, value if lacks is None else when(lacks, old.field(name), value)))
        return when(row.is_there(), struct(columns))

    def _base(self, spark: SparkSession, placement: ShardPlacement) -> DataFrame:
        """Every stored row, assigned to its current shard, and a marker for every shard, also those without rows."""
        weights = [f"{WEIGHT} AS {BASE}", f"greatest({WEIGHT}, 0L) AS {SHOWN}", f"0L AS {WEIGHT}"]
        stored = [name for _, name in self.columns]
        rows = self._kept(spark, placement.home).selectExpr(
            *stored, *weights, f"{STORED} AS {INPUT}", f"CAST(NULL AS INT) AS {SHARD}"
        )
        word = spark.range(placement.shards).selectExpr(f"CAST(id AS INT) AS {SHARD}", f"{COMPLETE} AS {INPUT}")
        return self._sharded(rows, placement).unionByName(word, allowMissingColumns=True)

    def _sharded(self, rows: DataFrame, placement: ShardPlacement) -> DataFrame:
        types = dict(zip((stored for _, stored in self.columns), self._types.values(), strict=True))
        maps = {name: with_sorted_maps(column(name), kind) for name, kind in types.items() if has_map(kind)}
        sorted_rows = rows.withColumns({name: value.column for name, value in maps.items()})
        shard = F.expr(f"coalesce({SHARD}, CAST(pmod({HASH}, {placement.shards}) AS INT))")
        return sorted_rows.withColumn(HASH, row_hash(types).column).withColumn(SHARD, shard)


def source_bag(catalog: Catalog, source: SourceRecord, home: str, until: int | None = None) -> KeylessTable:
    """The table of a source without a key as of an epoch; by default the last one."""
    manifests = {record.shard: record.manifest for record in catalog.manifests(source.id, until)}
    store = RunStore.at(home)
    return KeylessTable(
        owner=source.id,
        name=source.name,
        schema=source.schema,
        fields=_fields(source),
        has_partitions=spec_of(source).connector.has_partitions,
        expected=catalog.last_advance(source.id),
        manifests=manifests,
        partitions=progress_of((Manifest.from_json(text), store) for text in manifests.values()),
    )


def source_bag_traces(catalog: Catalog, source: SourceRecord, until: int | None = None) -> list[TraceSpec]:
    """The traces that its state as of an epoch consists of. No file is read."""
    manifests = [Manifest.from_json(record.manifest) for record in catalog.manifests(source.id, until)]
    return MultisetKernel(Multiset(_fields(source))).traces(manifests)


def _fields(source: SourceRecord) -> tuple[pa.Field, ...]:
    named = zip(source.schema, columns_of(source.schema), strict=True)
    return tuple(field.with_name(f"c{node.id}").with_type(kept_type(field.type)) for field, node in named)
