"""Epochs as commits of an Iceberg table. The table itself remembers the last epoch of a sink, in the same commit.

So a delivery that is repeated after a crash finds itself done. Columns that the rows have beyond the table are added
to it, and types grow as Iceberg allows.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine import faults
from laminae.schema.column import columns_of
from laminae.spark.lake.iceberg_table import iceberg_table, table_settings
from laminae.spark.lake.key_filter import key_filter
from laminae.spark.lake.segment_rows import segment_rows, sink_key
from laminae.spark.lake.sink_problems import unavailable, writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment
    from laminae.spark.lake.iceberg_table import IcebergTable
    from laminae.spark.lake.segment_rows import SegmentRows

SINK, EPOCH = "laminae.sink", "laminae.epoch"
RENAMED_KEY = "it has no column {column}, which is part of the key; rename the column there as it was renamed here"
OTHERS = "others have written to it since epoch {epoch}, so it cannot be taken back to that"
EXPIRED = "the snapshot of epoch {epoch} has expired, so it cannot be taken back to that"


def deliver_iceberg(segment: Segment, sink: SinkRecord) -> None:
    name = _named(sink)
    change = segment_rows(segment, sink)
    if change.is_empty:
        return
    with writing(sink, name.location, name.secrets()):
        table = _opened(name, change.rows.schema)
        if _last_epoch(table, sink) >= segment.epoch:
            return
        _evolve(table, sink, segment, change)
        _write(table, sink, segment, change)
    faults.reach("part in place")


def take_back_iceberg(sink: SinkRecord, after: int) -> None:
    """Roll the table back to what it was before later epochs of this sink; refused when others have written since."""
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.table.update.snapshot import ManageSnapshots

    name = _named(sink)
    with writing(sink, name.location, name.secrets()):
        try:
            table = name.load()
        except NoSuchTableError:
            return
        later = [snapshot for snapshot in _ancestors(table) if _epoch_of(snapshot, sink) > after]
        if later != list(_ancestors(table))[: len(later)]:
            raise unavailable(sink, name.location, OTHERS.format(epoch=after))
        with _committing(table) as change:
            if later and later[-1].parent_snapshot_id is not None:
                ManageSnapshots(change).rollback_to_snapshot(later[-1].parent_snapshot_id).commit()
            elif later and later[-1].sequence_number != 1:
                raise unavailable(sink, name.location, EXPIRED.format(epoch=after))
            elif later and any(table.scan().plan_files()):
                change.delete("true")
            change.set_properties({f"{sink_key(sink)}.epoch": str(after)})


def _named(sink: SinkRecord) -> IcebergTable:
    return iceberg_table(table_settings(dict(sink.options), sink.name), sink.name)


def _opened(name: IcebergTable, schema: pa.Schema) -> Table:
    """The table, made with these columns if it is not there."""
    catalog = name.opened()
    namespace = name.name.rpartition(".")[0]
    if not catalog.table_exists(name.name):
        catalog.create_namespace_if_not_exists(namespace)
        catalog.create_table_if_not_exists(name.name, pa.schema([field.with_nullable(True) for field in schema]))
    return catalog.load_table(name.name)


def _evolve(table: Table, sink: SinkRecord, segment: Segment, change: SegmentRows) -> None:
    """A commit of its own: to do it again changes nothing. A source's columns are known by their ids, also renamed."""
    columns = f"{sink_key(sink)}.columns"
    known = json.loads(table.properties.get(columns, "{}"))
    names = {str(node.id): node.name for node in columns_of(segment.schema) if node.id is not None}
    renamed = {known[number]: name for number, name in names.items() if known.get(number, name) != name}
    fields = [field.remove_metadata() for field in change.rows.schema]
    with _committing(table) as transaction:
        there = set(table.schema().column_names)
        with transaction.update_schema() as update:
            for old, new in renamed.items():
                if old in there and new not in there:
                    update.rename_column(old, new)
        _refuse_missing_key(transaction, sink, change)
        with transaction.update_schema() as update:
            update.union_by_name(pa.schema(fields))
        if names != known:
            transaction.set_properties({columns: json.dumps(names)})


def _refuse_missing_key(transaction: Transaction, sink: SinkRecord, change: SegmentRows) -> None:
    """By a column that is only now made, no former row would be found."""
    there = transaction.table_metadata.schema().column_names
    for column in change.key or ():
        if column not in there:
            raise unavailable(sink, _named(sink).location, RENAMED_KEY.format(column=column))


def _write(table: Table, sink: SinkRecord, segment: Segment, change: SegmentRows) -> None:
    told = {SINK: sink_key(sink), EPOCH: str(segment.epoch)}
    former = None
    if change.gone is not None:
        former = key_filter(pa.concat_tables([change.gone, change.rows.select(change.key)]))
    # pyiceberg warns of a delete that finds nothing.
    has_former = former is not None and bool(table.scan(row_filter=former, limit=1).to_arrow().num_rows)
    with _committing(table) as transaction:
        if former is not None and has_former:
            transaction.delete(former, snapshot_properties=told)
        if change.rows.num_rows:
            transaction.append(change.rows, snapshot_properties=told)
        transaction.set_properties({f"{sink_key(sink)}.epoch": str(segment.epoch)})


@contextmanager
def _committing(table: Table) -> Iterator[Transaction]:
    """A commit that is not tried again on top of another's: that may be the same epoch, delivered by another driver.

    It is for whoever delivers to look again. pyiceberg reads the number of attempts from the table.
    """
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    with table.transaction() as transaction:
        yield transaction


def _ancestors(table: Table) -> Iterator[Snapshot]:
    """The present snapshot and those before it."""
    found = table.current_snapshot()
    while found is not None:
        yield found
        parent = found.parent_snapshot_id
        found = None if parent is None else table.snapshot_by_id(parent)


def _epoch_of(snapshot: Snapshot, sink: SinkRecord) -> int:
    """The epoch of this sink that a snapshot holds, 0 when it is by somebody else."""
    told = {} if snapshot.summary is None else snapshot.summary.additional_properties
    return int(told.get(EPOCH, "0")) if told.get(SINK) == sink_key(sink) else 0


def _last_epoch(table: Table, sink: SinkRecord) -> int:
    return int(table.properties.get(f"{sink_key(sink)}.epoch", "0"))
