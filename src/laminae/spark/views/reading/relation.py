"""Reads relations, mainly views: their rows as of an epoch, and their changes since an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from laminae.engine.definitions.sinks import view_retraction
from laminae.engine.options import VIEW_OPTIONS, option
from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import LIVE
from laminae.engine.views.row_source import RowsFrom, rows_from
from laminae.errors import ChangelogExpired, QueryFailed, ViewNotReady
from laminae.schema.arrays import as_schema
from laminae.spark.catalyst.types import arrow_schema
from laminae.spark.source_tables.retractions import net_rows
from laminae.spark.source_tables.source_rows import source_changes, source_table
from laminae.spark.views.input_types import InputTypes
from laminae.spark.views.plan import NEVER, WINDOW_END
from laminae.spark.views.reading.changelog_files import changes_under
from laminae.spark.views.reading.changelog_table import changelog_rows
from laminae.spark.views.reading.table import held_rows, view_table
from laminae.spark.views.runner import ViewRunner, with_weight
from laminae.views.emit import Kind
from laminae.views.operators import reads_in, stateless_reads
from laminae.views.planner import quoted
from laminae.zset.changelog import OP, TIMESTAMP, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.catalog.model import AdvanceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage
    from laminae.spark.views.plan import Relations, ShardPlacement, ViewState

EPOCH = "_epoch"


def table_of(
    spark: SparkSession, catalog: Catalog, storage: Storage, view: ViewRecord, until: int | None = None
) -> DataFrame:
    """The rows of a view as of an epoch; by default the last one."""
    if view.state != LIVE and until is None:
        raise ViewNotReady(view=view.name, state=view.state, problem=view.problem or "its backfill is running")
    runner = ViewRunner(catalog, storage)
    sources, views = catalog.sources(), catalog.views()
    state = runner.state(view, sources, views, until)
    placement = runner.placement(spark)
    if rows_from(view, sources, views, state.plan) is RowsFrom.CHANGELOG:
        return _summed_table(spark, catalog, storage, view, state, until)
    if not state.strategy.is_immediate:
        return _emitted_table(spark, catalog, storage, view, state, placement, until)
    return view_table(spark, state, stateless_tables(spark, catalog, storage, state, until), placement)


def _summed_table(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    view: ViewRecord,
    state: ViewState,
    until: int | None,
) -> DataFrame:
    """The rows of a view that are not held in operator state: the sum of its changelog."""
    rows = _summed(spark, catalog, storage, view, state, until)
    is_plain = all(compacted.is_plain for compacted in catalog.compacted(view.id, until))
    if is_plain and view_retraction(view, catalog.sources(), catalog.views()) is None:
        # An append-only view, each row with weight 1: nothing needs to be summed.
        return rows.drop(WEIGHT)
    return net_rows(rows)


def _summed(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    view: ViewRecord,
    state: ViewState,
    until: int | None,
) -> DataFrame:
    """The changelog as rows with `_weight`; for some old homes, the rows computed again from the inputs."""
    assert state.inputs is not None  # always set by ViewRunner.state
    wanted = state.inputs.schema(spark, state.plan.root)
    try:
        return changelog_rows(spark, catalog, storage, view, wanted, state.plan.ids, until)
    except (ChangelogExpired, QueryFailed):
        # The home is from a version that removed the segments of such views, or stored them without column ids.
        if option(view.options, "backfill", VIEW_OPTIONS) != "true" or not state.strategy.is_immediate:
            raise
        tables = stateless_tables(spark, catalog, storage, state, until)
        return with_weight(view_table(spark, state, tables, ViewRunner(catalog, storage).placement(spark)))


def _emitted_table(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    view: ViewRecord,
    state: ViewState,
    placement: ShardPlacement,
    until: int | None,
) -> DataFrame:
    """The rows of a view that holds changes back: only those that it has emitted."""
    last = catalog.last_emission(view.id, until)
    by_window = state.plan.window is not None and state.strategy.kind is not Kind.EVERY
    as_of = until if by_window or last is None else last[0]
    if not by_window and last is not None:
        state = ViewRunner(catalog, storage).state(view, catalog.sources(), catalog.views(), as_of)
    tables = stateless_tables(spark, catalog, storage, state, as_of)
    if by_window:
        bound = NEVER if state.bound is None else state.bound
        return held_rows(spark, state, tables, placement, NEVER, bound).drop(WINDOW_END)
    rows = view_table(spark, state, tables, placement)
    return rows if last is not None else rows.limit(0)


def relations_of(state: ViewState) -> list[str]:
    """The distinct names of the relations that a view reads, in lower case."""
    return list(dict.fromkeys(read.relation.casefold() for read in reads_in(state.plan.root)))


def stateless_tables(
    spark: SparkSession, catalog: Catalog, storage: Storage, state: ViewState, until: int | None = None
) -> Relations:
    """The relations, as of an epoch, that a view reads through no stateful operator: its state lacks their rows."""
    names = dict.fromkeys(read.relation.casefold() for read in stateless_reads(state.plan.root))
    return {name: relation_table(spark, catalog, storage, name, until) for name in names}


def relation_schema(spark: SparkSession, catalog: Catalog, name: str) -> StructType:
    """The columns of a relation. No file or log is opened."""
    return InputTypes(catalog.sources(), catalog.views()).relation(spark, name).schema


def relation_table(
    spark: SparkSession, catalog: Catalog, storage: Storage, name: str, until: int | None = None
) -> DataFrame:
    source = catalog.source(name)
    if source is not None:
        return source_table(spark, catalog, storage, source, until)
    view = catalog.view(name)
    assert view is not None  # a view cannot be dropped while another reads it
    return table_of(spark, catalog, storage, view, until)


def relation_filling(
    spark: SparkSession, catalog: Catalog, storage: Storage, name: str, until: int, only_left: bool = False
) -> DataFrame:
    """Rows with `_weight` for the backfill of a new view. Retractions that arrived before their inserts are included.

    `only_left`: records that retention has removed from a log are skipped; otherwise reading them raises.
    """
    source = catalog.source(name)
    if source is not None and not spec_of(source).keeps_table:
        return source_changes(spark, catalog, storage, source, until, only_left=only_left)
    view, sources, views = catalog.view(name), catalog.sources(), catalog.views()
    if view is not None and rows_from(view, sources, views) is RowsFrom.CHANGELOG:
        state = ViewRunner(catalog, storage).state(view, sources, views, until)
        return _summed(spark, catalog, storage, view, state, until)
    return with_weight(relation_table(spark, catalog, storage, name, until))


def relation_changes(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    name: str,
    since: int,
    until: int,
    only_left: bool = False,
) -> DataFrame:
    """The changes of a relation after epoch `since` and up to epoch `until`, as rows with `_weight`."""
    source, view = catalog.source(name), catalog.view(name)
    if source is not None and not spec_of(source).keeps_table:
        return source_changes(spark, catalog, storage, source, until, since, only_left)
    owner = source or view
    assert owner is not None  # a view cannot be dropped while another reads it
    advances = catalog.advances(owner.id, since, until)
    wanted = relation_schema(spark, catalog, name)
    stored = [advance for advance in advances if advance.files]
    if not stored:
        return with_weight(spark.createDataFrame([], wanted))
    own = {OP, WEIGHT, TIMESTAMP, *wanted.names}
    if gone := [column for advance in advances for column in advance.schema.names if column not in own]:
        # Changes are matched by column name: the old ones would have NULL in the renamed column.
        reason = f"column {gone[0]} of {name} was renamed after epoch {since}: CREATE OR REPLACE the view that reads it"
        raise QueryFailed(problem=reason)
    schema = pa.schema([*arrow_schema(wanted), pa.field(WEIGHT, pa.int64())])
    rows = changes_under(spark, catalog, storage, owner, stored, schema)
    return rows.select(*map(quoted, wanted.names), WEIGHT)


def changelog(
    storage: Storage, advances: Iterable[AdvanceRecord], schema: pa.Schema, added: Mapping[str, pa.Scalar]
) -> pa.Table:
    """The changes of these epochs in order, under `schema`, with `_epoch`, `_op`, `_weight` and `_timestamp` first.

    `added` has the non-NULL values, by column name, for rows that are older than the column.
    """
    own = [pa.field(EPOCH, pa.int64()), *(schema.field(name) for name in (OP, WEIGHT, TIMESTAMP))]
    rest = [field for field in schema if field.name not in (OP, WEIGHT, TIMESTAMP)]
    whole = pa.schema([*own, *rest])
    parts = [_part(storage, advance.epoch, file, whole, added) for advance in advances for file in advance.files]
    return pa.concat_tables([whole.empty_table(), *parts])


def _part(storage: Storage, epoch: int, file: str, schema: pa.Schema, added: Mapping[str, pa.Scalar]) -> pa.Table:
    table = pq.read_table(storage.home / file)
    columns = [
        pa.repeat(pa.scalar(epoch, pa.int64()), table.num_rows)
        if field.name == EPOCH
        else as_schema(table, pa.schema([field])).column(0)
        if field.name in table.column_names
        else pa.repeat(added.get(field.name, pa.scalar(None)).cast(field.type), table.num_rows)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
