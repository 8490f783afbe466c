"""The Delta sink: write each epoch as a commit of a Delta table with delta-rs. Columns that the table lacks are added.

The transaction identifier (`txn` action) of a commit is (sink, epoch), so a delivery that is repeated after a crash is
recognised and skipped.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine import faults
from laminae.schema.identity import column_ids
from laminae.spark.sinks.lakehouse.errors import unavailable, writing
from laminae.spark.sinks.lakehouse.segment_rows import segment_rows, sink_key
from laminae.spark.sources.delta.table import opened, table_path
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalake import CommitProperties, DeltaTable, Field

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.lakehouse.segment_rows import SegmentRows
    from laminae.spark.sinks.segment import Segment

GONE = "_laminae_gone"
OTHERS = "it was written by others since epoch {epoch}, so it cannot be rolled back to that epoch"
EXPIRED = "its log no longer contains epoch {epoch}, so it cannot be rolled back to that epoch"
ELSEWHERE = "a Delta sink cannot apply this change; create a sink with another path, which starts with the current rows"
RENAMED = f"its column {{old}} is called {{new}} now, and {ELSEWHERE}"
REUSED = f"its column {{column}} was dropped and another has its name now, and {ELSEWHERE}"
ROUNDED = f"its column {{column}} is a FLOAT and would round values that are DOUBLE now, and {ELSEWHERE}"
COLUMN = "laminae.column"
RENAMED_KEY = "it has no column {column}, which is part of the key; rename the column there as it was renamed here"


def deliver_delta(segment: Segment, sink: SinkRecord) -> None:
    change, path = segment_rows(segment, sink), table_path(dict(sink.options), sink.name)
    if change.is_empty:
        return
    with writing(sink, path):
        table = _table(path, sink)
        if table is not None and (table.transaction_version(sink_key(sink)) or 0) >= segment.epoch:
            return
        ids = {name: f"{segment.relation_id}/{identity}" for name, identity in column_ids(segment.schema).items()}
        if table is not None:
            _refuse_changed_columns(table, sink, ids, change.rows.schema)
        change = replace(change, rows=_identified(change.rows, ids))
        if table is None or change.key is None:
            _append(table, path, change.rows, _told(sink, segment.epoch))
        else:
            _merge(table, sink, change, _told(sink, segment.epoch))
    faults.reach("part in place")


def take_back_delta(sink: SinkRecord, after: int) -> None:
    """Restore the version before this sink's epochs after `after`; refused if other writers have committed since."""
    path = table_path(dict(sink.options), sink.name)
    with writing(sink, path):
        table = _table(path, sink)
        if table is None or (table.transaction_version(sink_key(sink)) or 0) <= after:
            return
        version = table.version()
        while version >= 0 and _epoch_of(path, version, sink, after) > after:
            version -= 1
        if any(_epoch_of(path, older, sink, after) > after for older in range(version, -1, -1)):
            raise unavailable(sink, path, OTHERS.format(epoch=after))
        if version < 0:
            table.delete(commit_properties=_told(sink, after))
        else:
            table.restore(version, commit_properties=_told(sink, after))


def _identified(rows: pa.Table, ids: Mapping[str, str]) -> pa.Table:
    """Add column ids as field metadata, which the Delta table keeps for the columns that it gets."""
    fields = [field.with_metadata({COLUMN: ids[field.name]}) if field.name in ids else field for field in rows.schema]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def _refuse_changed_columns(table: DeltaTable, sink: SinkRecord, ids: Mapping[str, str], rows: pa.Schema) -> None:
    """Refuse renamed and reused columns, and a FLOAT that is now DOUBLE: delta-rs neither renames nor widens columns.

    After a rename, existing rows would keep their values in another column.
    """
    fields = {field.name: field for field in table.schema().fields}
    names = {field.metadata.get(COLUMN): field.name for field in fields.values()}
    relation_prefixes = {identity.partition("/")[0] for identity in ids.values()}
    for name, identity in ids.items():
        former = names.get(identity, name)
        if former != name:
            raise unavailable(sink, table.table_uri, RENAMED.format(old=former, new=name))
        column = fields.get(name)
        other = None if column is None else column.metadata.get(COLUMN)
        # A column of a replaced view may be reused: the rows of that view have been retracted.
        if other is not None and other != identity and other.partition("/")[0] in relation_prefixes:
            raise unavailable(sink, table.table_uri, REUSED.format(column=name))
        is_rounded = column is not None and _is_float(column) and name in rows.names
        if other is not None and is_rounded and pa.types.is_float64(rows.field(name).type):
            raise unavailable(sink, table.table_uri, ROUNDED.format(column=name))


def _is_float(field: Field) -> bool:
    return str(getattr(field.type, "type", "")) == "float"


def _table(path: str, sink: SinkRecord) -> DeltaTable | None:
    from deltalake.exceptions import TableNotFoundError

    try:
        return opened(path, sink.name)
    except TableNotFoundError:
        return None


def _told(sink: SinkRecord, epoch: int) -> CommitProperties:
    """No commit retries: a conflicting commit may be the same epoch, delivered by another driver."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(sink_key(sink), epoch)], max_commit_retries=0)


def _append(table: DeltaTable | None, path: str, rows: pa.Table, told: CommitProperties) -> None:
    from deltalake import write_deltalake

    write_deltalake(table or path, rows, mode="append", schema_mode="merge", commit_properties=told)


def _merge(table: DeltaTable, sink: SinkRecord, found: SegmentRows, told: CommitProperties) -> None:
    columns = {field.name for field in table.schema().fields}
    for column in found.key or ():
        if column not in columns:
            raise unavailable(sink, table.table_uri, RENAMED_KEY.format(column=column))
    names = found.rows.column_names
    source = pa.concat_tables([_flagged(found.rows, False), _flagged(found.gone, True)], promote_options="default")
    values = {quoted(name): f"s.{quoted(name)}" for name in names}
    (
        table.merge(
            source,
            _same(found.key or ()),
            source_alias="s",
            target_alias="t",
            merge_schema=True,
            commit_properties=told,
        )
        .when_matched_delete(f"s.{GONE}")
        .when_matched_update(values)
        .when_not_matched_insert(values, predicate=f"NOT s.{GONE}")
        .execute()
    )


def _flagged(rows: pa.Table | None, gone: bool) -> pa.Table:
    assert rows is not None  # set whenever there is a key
    return rows.append_column(GONE, pa.array([gone] * rows.num_rows, pa.bool_()))


def _same(key: Sequence[str]) -> str:
    """The merge condition, with NULL equal to NULL."""
    names = [quoted(name) for name in key]
    return " AND ".join(f"(t.{name} = s.{name} OR (t.{name} IS NULL AND s.{name} IS NULL))" for name in names)


def _epoch_of(path: str, version: int, sink: SinkRecord, after: int) -> int:
    """The epoch of this sink that a table version committed, 0 if another writer committed it."""
    try:
        lines = Path(path, "_delta_log", f"{version:020}.json").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise unavailable(sink, path, EXPIRED.format(epoch=after)) from None
    transactions = [action["txn"] for action in map(json.loads, lines) if "txn" in action]
    return max((int(txn["version"]) for txn in transactions if txn["appId"] == sink_key(sink)), default=0)
