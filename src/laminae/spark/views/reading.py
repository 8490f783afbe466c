"""Views as relations: their rows as of an epoch, from their state, and what changed of them since one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from laminae.engine.changelogs import is_retract, keeps_table
from laminae.engine.view_order import LIVE
from laminae.errors import QueryFailed, ViewNotReady
from laminae.spark.tables import source_changes, source_table
from laminae.spark.types import arrow_schema
from laminae.spark.views.changelog_files import changes_under
from laminae.spark.views.run import ViewRunner, with_weight
from laminae.spark.views.tables import held_rows, view_table
from laminae.spark.views.tasks import TIMESTAMP
from laminae.spark.views.tree import NEVER, WINDOW_END
from laminae.views.emission import Kind
from laminae.views.kernels.changelog import OP, WEIGHT
from laminae.views.operators import reads_in
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import AdvanceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage
    from laminae.spark.views.tree import Place, ViewState

EPOCH = "_epoch"


def table_of(
    spark: SparkSession, catalog: Catalog, storage: Storage, view: ViewRecord, until: int | None = None
) -> DataFrame:
    """The rows of a view as of an epoch, the last one unless told."""
    if view.state != LIVE and until is None:
        raise ViewNotReady(view=view.name, state=view.state, problem=view.problem or "it is being filled")
    runner = ViewRunner(catalog, storage)
    state = runner.state(view, catalog.sources(), catalog.views(), until)
    place = runner.place(spark)
    if not state.strategy.is_immediate:
        return _emitted_table(spark, catalog, storage, view, state, place, until)
    tables = {name: relation_table(spark, catalog, storage, name, until) for name in relations_of(state)}
    return view_table(spark, state, tables, place)


def _emitted_table(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    view: ViewRecord,
    state: ViewState,
    place: Place,
    until: int | None,
) -> DataFrame:
    """Of a view that holds back: what it has emitted, no more."""
    last = catalog.last_emission(view.id, until)
    by_window = state.plan.window is not None and state.strategy.kind is not Kind.EVERY
    as_of = until if by_window or last is None else last[0]
    if not by_window and last is not None:
        state = ViewRunner(catalog, storage).state(view, catalog.sources(), catalog.views(), as_of)
    tables = {name: relation_table(spark, catalog, storage, name, as_of) for name in relations_of(state)}
    if by_window:
        bound = NEVER if state.bound is None else state.bound
        return held_rows(spark, state, tables, place, NEVER, bound).drop(WINDOW_END)
    rows = view_table(spark, state, tables, place)
    return rows if last is not None else rows.limit(0)


def relations_of(state: ViewState) -> list[str]:
    """The relations that a view reads, in lower case, each once."""
    return list(dict.fromkeys(read.relation.casefold() for read in reads_in(state.plan.root)))


def relation_table(
    spark: SparkSession, catalog: Catalog, storage: Storage, name: str, until: int | None = None
) -> DataFrame:
    source = catalog.source(name)
    if source is not None:
        return source_table(spark, catalog, storage, source, until)
    view = catalog.view(name)
    assert view is not None  # a view cannot be dropped while another reads it
    return table_of(spark, catalog, storage, view, until)


def relation_filling(spark: SparkSession, catalog: Catalog, storage: Storage, name: str, until: int) -> DataFrame:
    """Rows with `_weight`: all that a new view reads of a relation. What was taken back too early counts as well."""
    source = catalog.source(name)
    if source is not None and is_retract(source):
        return relation_changes(spark, catalog, storage, name, 0, until)
    return with_weight(relation_table(spark, catalog, storage, name, until))


def relation_changes(
    spark: SparkSession, catalog: Catalog, storage: Storage, name: str, since: int, until: int
) -> DataFrame:
    """Rows with `_weight`: what changed of a relation after one epoch and up to another."""
    source, view = catalog.source(name), catalog.view(name)
    if source is not None and not keeps_table(source):
        return source_changes(spark, catalog, storage, source, until, since)
    owner = source or view
    assert owner is not None  # a view cannot be dropped while another reads it
    advances = catalog.advances(owner.id, since, until)
    wanted = relation_table(spark, catalog, storage, name, until).schema
    kept = [advance for advance in advances if advance.files]
    if not kept:
        return with_weight(spark.createDataFrame([], wanted))
    own = {OP, WEIGHT, TIMESTAMP, *wanted.names}
    if gone := [column for advance in advances for column in advance.schema.names if column not in own]:
        # By names alone the old changes would have NULL in the renamed column.
        told = f"column {gone[0]} of {name} was renamed after epoch {since}: CREATE OR REPLACE the view that reads it"
        raise QueryFailed(problem=told)
    schema = pa.schema([*arrow_schema(wanted), pa.field(WEIGHT, pa.int64())])
    rows = changes_under(spark, catalog, storage, owner, kept, schema)
    return rows.select(*map(quoted, wanted.names), WEIGHT)


def changelog(
    storage: Storage, advances: Iterable[AdvanceRecord], schema: pa.Schema, added: Mapping[str, pa.Scalar]
) -> pa.Table:
    """The changes of these epochs in their order, under the newest schema: `_epoch`, `_op`, `_weight`, `_timestamp`.

    `added` is what rows from before a column was there have in it, where it is not NULL.
    """
    own = [pa.field(EPOCH, pa.int64()), *(schema.field(name) for name in (OP, WEIGHT, TIMESTAMP))]
    rest = [field for field in schema if field.name not in (OP, WEIGHT, TIMESTAMP)]
    whole = pa.schema([*own, *rest])
    parts = [_part(storage, advance.epoch, file, whole, added) for advance in advances for file in advance.files]
    return pa.concat_tables([whole.empty_table(), *parts])


def _part(storage: Storage, epoch: int, file: str, schema: pa.Schema, added: Mapping[str, pa.Scalar]) -> pa.Table:
    found = pq.read_table(storage.home / file)
    columns = [
        pa.repeat(pa.scalar(epoch, pa.int64()), found.num_rows)
        if field.name == EPOCH
        else found.column(field.name).cast(field.type)
        if field.name in found.column_names
        else pa.repeat(added.get(field.name, pa.scalar(None)).cast(field.type), found.num_rows)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
