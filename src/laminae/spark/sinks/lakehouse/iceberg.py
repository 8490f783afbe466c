"""The Iceberg sink: write each epoch as a commit of an Iceberg table.

The same commit stores the sink's last epoch in the table properties, so a delivery that is repeated after a crash is
recognised and skipped. Columns that the table lacks are added, and types are promoted as Iceberg allows.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine import faults
from laminae.engine.definitions.sink_names import refuse_names
from laminae.schema.identity import column_ids
from laminae.spark.sinks.lakehouse.errors import unavailable, writing
from laminae.spark.sinks.lakehouse.key_filter import key_filter
from laminae.spark.sinks.lakehouse.segment_rows import segment_rows, sink_key
from laminae.spark.sinks.renames import name_aside, rename_steps
from laminae.spark.sources.iceberg.table import iceberg_table, table_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.lakehouse.segment_rows import SegmentRows
    from laminae.spark.sinks.segment import Segment
    from laminae.spark.sources.iceberg.table import IcebergTable

SINK, EPOCH = "laminae.sink", "laminae.epoch"
RENAMED_KEY = "it has no column {column}, which is part of the key; rename the column there as it was renamed here"
OTHERS = "it was written by others since epoch {epoch}, so it cannot be rolled back to that epoch"
EXPIRED = "the snapshot of epoch {epoch} has expired, so it cannot be rolled back to that epoch"


def deliver_iceberg(segment: Segment, sink: SinkRecord) -> None:
    name = _named(sink)
    change = segment_rows(segment, sink)
    if change.is_empty:
        return
    refuse_names(sink.name, "iceberg", None, tuple(change.rows.column_names), change.key or ())
    with writing(sink, name.location, name.secrets()):
        table = _opened(name, change.rows.schema)
        if _last_epoch(table, sink) >= segment.epoch:
            return
        _evolve(table, sink, segment, change)
        _write(table, sink, segment, change)
    faults.reach("part in place")


def take_back_iceberg(sink: SinkRecord, after: int) -> None:
    """Roll back to the snapshot before this sink's epochs after `after`; refused if others have committed since."""
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
    """Load the table; create it with these columns if it does not exist."""
    catalog = name.opened()
    namespace = name.name.rpartition(".")[0]
    if not catalog.table_exists(name.name):
        catalog.create_namespace_if_not_exists(namespace)
        catalog.create_table_if_not_exists(name.name, pa.schema([field.with_nullable(True) for field in schema]))
    return catalog.load_table(name.name)


def _evolve(table: Table, sink: SinkRecord, segment: Segment, change: SegmentRows) -> None:
    """Evolve the table's schema in a separate, idempotent commit. Columns are matched by column id, also if renamed.

    A dropped column stays in the table with its values. If a new column takes its name, the old one is renamed.
    """
    columns = f"{sink_key(sink)}.columns"
    known: dict[str, str] = json.loads(table.properties.get(columns, "{}"))
    names = {identity: name for name, identity in column_ids(segment.schema).items()}
    table_columns = set(table.schema().column_names)
    wanted = {known[identity]: name for identity, name in names.items() if known.get(identity) in table_columns}
    dropped = {name: identity for identity, name in known.items() if identity not in names and name in table_columns}
    aside = {name: name_aside(name, {*table_columns, *names.values()}) for name in names.values() if name in dropped}
    renamed = {identity: aside.get(name, name) for identity, name in known.items() if identity not in names}
    fields = [field.remove_metadata() for field in change.rows.schema]
    with _committing(table) as transaction:
        for old, new in rename_steps({**wanted, **aside}, table_columns):
            # One update per rename: a single update cannot use a name that becomes free only by an earlier rename.
            with transaction.update_schema() as update:
                update.rename_column(old, new)
        _refuse_missing_key(transaction, sink, change)
        with transaction.update_schema() as update:
            update.union_by_name(pa.schema(fields))
        if {**renamed, **names} != known:
            transaction.set_properties({columns: json.dumps({**renamed, **names})})


def _refuse_missing_key(transaction: Transaction, sink: SinkRecord, change: SegmentRows) -> None:
    """Refuse a key column that the table lacks: if it were added now, the filter on it would find no existing row."""
    columns = transaction.table_metadata.schema().column_names
    for column in change.key or ():
        if column not in columns:
            raise unavailable(sink, _named(sink).location, RENAMED_KEY.format(column=column))


def _write(table: Table, sink: SinkRecord, segment: Segment, change: SegmentRows) -> None:
    properties = {SINK: sink_key(sink), EPOCH: str(segment.epoch)}
    former = None
    if change.gone is not None:
        former = key_filter(pa.concat_tables([change.gone, change.rows.select(change.key)]))
    # Checked first: pyiceberg logs a warning for a delete that matches no row.
    has_former = former is not None and bool(table.scan(row_filter=former, limit=1).to_arrow().num_rows)
    with _committing(table) as transaction:
        if former is not None and has_former:
            transaction.delete(former, snapshot_properties=properties)
        if change.rows.num_rows:
            transaction.append(change.rows, snapshot_properties=properties)
        transaction.set_properties({f"{sink_key(sink)}.epoch": str(segment.epoch)})


@contextmanager
def _committing(table: Table) -> Iterator[Transaction]:
    """A transaction without commit retries: a conflicting commit may be the same epoch, delivered by another driver.

    The next delivery attempt checks the last epoch again. pyiceberg reads the number of retries from the table
    properties, so it is overridden in the local metadata.
    """
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    with table.transaction() as transaction:
        yield transaction


def _ancestors(table: Table) -> Iterator[Snapshot]:
    """The current snapshot and its ancestors, newest first."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)


def _epoch_of(snapshot: Snapshot, sink: SinkRecord) -> int:
    """The epoch of this sink that a snapshot committed, 0 if another writer committed it."""
    properties = {} if snapshot.summary is None else snapshot.summary.additional_properties
    return int(properties.get(EPOCH, "0")) if properties.get(SINK) == sink_key(sink) else 0


def _last_epoch(table: Table, sink: SinkRecord) -> int:
    return int(table.properties.get(f"{sink_key(sink)}.epoch", "0"))
