"""Epochs as commits of a Delta table, written by delta-rs. The transaction id of a commit is (sink, epoch).

So a delivery that is repeated after a crash finds itself done. Columns that the rows have beyond the table are added.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine import faults
from laminae.spark.lake.delta_table import opened, table_path
from laminae.spark.lake.segment_rows import segment_rows, sink_key
from laminae.spark.lake.sink_problems import unavailable, writing
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import CommitProperties, DeltaTable

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment
    from laminae.spark.lake.segment_rows import SegmentRows

GONE = "_laminae_gone"
OTHERS = "others have written to it since epoch {epoch}, so it cannot be taken back to that"
EXPIRED = "its log does not reach back to epoch {epoch}, so it cannot be taken back to that"
RENAMED_KEY = "it has no column {column}, which is part of the key; rename the column there as it was renamed here"


def deliver_delta(segment: Segment, sink: SinkRecord) -> None:
    found, path = segment_rows(segment, sink), table_path(dict(sink.options), sink.name)
    if found.is_empty:
        return
    with writing(sink, path):
        table = _table(path, sink)
        if table is not None and (table.transaction_version(sink_key(sink)) or 0) >= segment.epoch:
            return
        if table is None or found.key is None:
            _append(table, path, found.rows, _told(sink, segment.epoch))
        else:
            _merge(table, sink, found, _told(sink, segment.epoch))
    faults.reach("part in place")


def take_back_delta(sink: SinkRecord, after: int) -> None:
    """Restore the version before later epochs of this sink; refused when others have written since."""
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


def _table(path: str, sink: SinkRecord) -> DeltaTable | None:
    from deltalake.exceptions import TableNotFoundError

    try:
        return opened(path, sink.name)
    except TableNotFoundError:
        return None


def _told(sink: SinkRecord, epoch: int) -> CommitProperties:
    """Tried once: what came between may be the same epoch, delivered by another driver."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(sink_key(sink), epoch)], max_commit_retries=0)


def _append(table: DeltaTable | None, path: str, rows: pa.Table, told: CommitProperties) -> None:
    from deltalake import write_deltalake

    write_deltalake(table or path, rows, mode="append", schema_mode="merge", commit_properties=told)


def _merge(table: DeltaTable, sink: SinkRecord, found: SegmentRows, told: CommitProperties) -> None:
    there = {field.name for field in table.schema().fields}
    for column in found.key or ():
        if column not in there:
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
    assert rows is not None  # there is a key
    return rows.append_column(GONE, pa.array([gone] * rows.num_rows, pa.bool_()))


def _same(key: Sequence[str]) -> str:
    """NULL is a value of a key like others."""
    names = [quoted(name) for name in key]
    return " AND ".join(f"(t.{name} = s.{name} OR (t.{name} IS NULL AND s.{name} IS NULL))" for name in names)


def _epoch_of(path: str, version: int, sink: SinkRecord, after: int) -> int:
    """The epoch of this sink that a commit holds, 0 when it is by somebody else."""
    try:
        lines = Path(path, "_delta_log", f"{version:020}.json").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise unavailable(sink, path, EXPIRED.format(epoch=after)) from None
    told = [action["txn"] for action in map(json.loads, lines) if "txn" in action]
    return max((int(txn["version"]) for txn in told if txn["appId"] == sink_key(sink)), default=0)
