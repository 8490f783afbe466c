"""Sources that keep a table by primary key: an upsert operator turns their records into changes for readers.

The kernel orders records by their position in the log: the item number, then the offset within the item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.codec.debezium.json_lines import DELETE
from laminae.engine.changelogs import field_of, key_of
from laminae.engine.source_spec import spec_of
from laminae.schema.column import columns_of
from laminae.spark.catalyst.expression import column, first_text, literal, when
from laminae.spark.catalyst.key_hash import canonical_key
from laminae.spark.catalyst.plans.prepared_frame import map_in_arrow
from laminae.spark.catalyst.types import spark_schema, spark_type
from laminae.spark.formats.debezium.events import EVENT, IGNORED, INSERT, TRUNCATE, unavailable_columns
from laminae.spark.formats.protocol import ERROR, PLACED, ROW
from laminae.spark.source_tables.commit import advance_of, kept_type, reports_in, shown_schema
from laminae.spark.source_tables.key_changes import EVENT_OP, DebeziumKernel
from laminae.spark.tasks.arrow_batches import DEFAULT_LIMITS, SHORT_ROW_LIMITS, limit_batches
from laminae.spark.tasks.emit import Emit
from laminae.spark.tasks.shard_task import SHARD, OperatorState, ShardRows, ShardTask
from laminae.spark.tasks.task_reports import StateReport
from laminae.trace.spec import HASH
from laminae.views.kernels.upsert.kernel import UpsertKernel
from laminae.views.kernels.upsert.keyed_table import (
    DELETED,
    ITEM,
    KEPT,
    MOVES,
    OFFSET,
    SEQUENCE,
    TABLE,
    KeyedTable,
)
from laminae.views.kernels.upsert.postponed import HOME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.source_tables.commit import Advance
    from laminae.spark.views.plan import ShardPlacement
    from laminae.trace.spec import TraceSpec
    from laminae.views.kernels.step import Kernel

NULL_KEY = "{name} is NULL and part of the PRIMARY KEY"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The table of a source: how it is stored, and its state by shard.

    `fields` are named after column ids, so that stored names neither change with a rename nor clash with the kernel's.
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
        """The columns in the types in which Spark passes them to tasks and back."""
        return shown_schema(self.schema)

    @property
    def output(self) -> tuple[pa.Field, ...]:
        """The columns under their names in the trace, in the types in which tasks pass them to Spark."""
        return tuple(field.with_name(stored.name) for field, stored in zip(self.shown, self.fields, strict=True))

    def kernel(self, is_spread: bool = False) -> Kernel:
        """`is_spread` is that of `table_delta`."""
        return DebeziumKernel(self.keyed, is_spread) if self.has_events else UpsertKernel(self.keyed)

    @property
    def traces(self) -> list[TraceSpec]:
        return self.kernel().traces(())

    def state(self, home: str) -> OperatorState:
        return OperatorState(self.owner, TABLE, home, self.manifests)

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, with an error set on those with a NULL in their key."""
        reasons = [when(column(ROW).field(name).is_null(), literal(NULL_KEY.format(name=name))) for name in self.key]
        if self.has_events:
            has_row = ~column(EVENT).field("op").is_one_of([TRUNCATE, *IGNORED])
            reasons = [when(has_row, reason) for reason in reasons]
        error = first_text([column(ERROR), *reasons])
        return records.withColumn(ERROR, error.column)

    def placed(self) -> list[Column]:
        """The columns of decoded records that the table needs in addition to the row."""
        return [F.struct(ROW, ITEM, OFFSET, *([EVENT] if self.has_events else [])).alias(PLACED)]

    def advance(
        self, spark: SparkSession, records: DataFrame, placement: ShardPlacement, directory: str, are_short: bool
    ) -> Advance:
        """Run one job over the records of an epoch: the catalog updates to commit, and the changes for readers.

        `are_short` is that of `laminae.spark.formats.protocol.Rows`.
        """
        for name, value in (SHORT_ROW_LIMITS if are_short else DEFAULT_LIMITS).items():
            spark.conf.set(name, value)
        if not are_short:
            limit_batches(spark, records.schema)
        delta = table_delta(self, records, placement, directory)
        reports = reports_in(delta)
        if any(isinstance(report, StateReport) and report.moved for report in reports):
            delta = table_delta(self, records, placement, directory, is_spread=True)
            reports = reports_in(delta)
        return advance_of(spark, (self.owner, self.name, self.expected), self.schema, delta, reports, placement)

    def rows(self, spark: SparkSession, home: str) -> DataFrame:
        """The rows of the table in this state."""
        shards = max(self.manifests, default=0) + 1
        rows = ShardRows(self.kernel(), self.state(home), self.shown)
        return map_in_arrow(spark.range(0, shards, 1, shards), rows, spark_schema(self.shown))


def keyed_table_of(catalog: Catalog, source: SourceRecord, until: int | None = None) -> SourceTable:
    """The table of a source with a key as of an epoch; by default the last one."""
    versions, has_events = catalog.versions(source.id), spec_of(source).is_debezium
    fields = tuple(
        field.with_name(f"c{node.id}").with_type(kept_type(field.type))
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
        manifests={record.shard: record.manifest for record in catalog.manifests(source.id, until)},
    )


def table_delta(
    table: SourceTable, records: DataFrame, placement: ShardPlacement, directory: str, is_spread: bool = False
) -> DataFrame:
    """The changes that these records make to the table; the tasks write them to `directory`.

    With `is_spread` every shard receives the events of all shards, to find values of rows whose key changed. Otherwise
    it receives, of other shards, only truncations and the inserts of such rows.
    """
    types = {name: spark_type(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)}
    row = {name: column(ROW).field(name).sql for name in types}
    keys = [canonical_key(row[name], types[name]) for name in table.key]
    hashed = ", ".join(keys)
    deleted = "FALSE" if table.deleted_by is None else f"COALESCE({row[table.deleted_by]}, FALSE)"
    shard = f"CAST(pmod(hash({hashed}), {placement.shards}) AS INT)"
    own = [f"xxhash64({hashed}) AS {HASH}", ITEM, OFFSET]
    if table.has_events:
        op = column(EVENT).field("op").sql
        moves = column(EVENT).field("moves").sql
        # Every shard needs truncations, and inserts of rows whose key changed: one shard remembers the old row.
        every_shard = f"sequence(0, {placement.shards - 1})"
        all_shards = f"WHEN {op} = '{TRUNCATE}' OR {op} = '{INSERT}' AND {moves} THEN {every_shard}"
        is_ignored = f"{op} IN ({', '.join(literal(op_name).sql for op_name in IGNORED)})"
        target_shards = every_shard if is_spread else f"array({shard})"
        own += [
            f"explode(CASE {all_shards} WHEN {is_ignored} THEN array(0) ELSE {target_shards} END) AS {SHARD}",
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
    frame = records.selectExpr(*own, *columns).repartitionById(placement.shards, SHARD)
    emit = Emit(table.owner, placement.home, directory, table.columns, table.key, placement.time)
    task = ShardTask(table.kernel(is_spread), table.state(placement.home), table.output, emit, fails_alone=False)
    return map_in_arrow(frame, task, spark_schema(task.schema()))
