"""What the snapshots of an Iceberg table did to its rows, as files that came and went. No data file is opened.

A snapshot that only rewrote files did nothing. What cannot be told by whole files is said to be so, with the reason.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from laminae.errors import SnapshotExpired
from laminae.spark.lake.table_files import Change, Done, TableFile, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from laminae.spark.lake.iceberg_table import IcebergTable

EXPIRED = "snapshots that came after it have expired"
LEFT = "the table does not descend from it any more (it was rolled back or replaced, or snapshots in between expired)"
DELETE_FILE = (
    "snapshot {snapshot} deletes rows by a delete file (merge-on-read), which is not read; let the writer copy on write"
)
NO_PARQUET = "snapshot {snapshot} has a file of format {format}, and Parquet alone is read"
ELSEWHERE = "snapshot {snapshot} has a file outside of this machine's file system"


def files_since(table: Table, name: IcebergTable, last: TableFile | None, first: int) -> list[TableFile]:
    """Of every snapshot behind `last`, numbered from `first`. Without a last one: all files of the present snapshot."""
    current = table.current_snapshot()
    if current is None:
        return []
    if last is None:
        return _numbered(table, current, _present(table, current), first)
    found: list[TableFile] = []
    for snapshot in _behind(table, name, last):
        found += _numbered(table, snapshot, _done_by(table, snapshot), first + len(found))
    return found


def _behind(table: Table, name: IcebergTable, last: TableFile) -> list[Snapshot]:
    """The snapshots between `last` and the present one, oldest first."""
    found: list[Snapshot] = []
    wanted = table.metadata.current_snapshot_id
    while wanted != last.snapshot:
        snapshot = None if wanted is None else table.snapshot_by_id(wanted)
        if snapshot is None:
            break
        found.append(snapshot)
        wanted = snapshot.parent_snapshot_id
    # With an expired snapshot its children may lose their parent; the next number in the table came right after it.
    if wanted != last.snapshot and found[-1].sequence_number != last.sequence + 1:
        problem = EXPIRED if table.snapshot_by_id(last.snapshot) is None else LEFT
        raise SnapshotExpired(source=name.owner, table=name.name, snapshot=last.snapshot, problem=problem)
    return found[::-1]


def _numbered(table: Table, snapshot: Snapshot, done: Sequence[Done], first: int) -> list[TableFile]:
    schema = table.metadata.current_schema_id if snapshot.schema_id is None else snapshot.schema_id
    sequence = snapshot.sequence_number or 0
    return numbered(done, first, snapshot.timestamp_ms, snapshot.snapshot_id, sequence, schema)


def _present(table: Table, snapshot: Snapshot) -> list[Done]:
    """Oldest files first."""
    manifests = snapshot.manifests(table.io)
    live = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]
    return [_came(entry.data_file, snapshot) for entry in sorted(live, key=lambda entry: entry.sequence_number or 0)]


def _done_by(table: Table, snapshot: Snapshot) -> list[Done]:
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus
    from pyiceberg.table.snapshots import Operation

    if snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE:
        return []
    found = []
    for entry in _entries(table, snapshot):
        if entry.status is ManifestEntryStatus.ADDED:
            found.append(_came(entry.data_file, snapshot))
        elif entry.status is ManifestEntryStatus.DELETED and entry.data_file.content is DataFileContent.DATA:
            found.append(_went(entry.data_file, snapshot))
    return found


def _entries(table: Table, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                if entry.snapshot_id in (None, snapshot.snapshot_id):
                    yield entry


def _came(file: DataFile, snapshot: Snapshot) -> Done:
    from pyiceberg.manifest import DataFileContent

    if file.content is not DataFileContent.DATA:
        reason = DELETE_FILE.format(snapshot=snapshot.snapshot_id)
        return Done(Change.REFUSED, file.file_path, file.file_size_in_bytes, reason)
    return _readable(file, snapshot, Change.ADDED)


def _went(file: DataFile, snapshot: Snapshot) -> Done:
    return _readable(file, snapshot, Change.REMOVED)


def _readable(file: DataFile, snapshot: Snapshot, change: Change) -> Done:
    from pyiceberg.manifest import FileFormat

    path, number = _local(file.file_path), snapshot.snapshot_id
    reason = None
    if path is None:
        reason = ELSEWHERE.format(snapshot=number)
    elif file.file_format is not FileFormat.PARQUET:
        reason = NO_PARQUET.format(snapshot=number, format=str(file.file_format.value).upper())
    if reason is not None:
        return Done(Change.REFUSED, file.file_path, file.file_size_in_bytes, reason)
    return Done(change, path or "", file.file_size_in_bytes)


def _local(location: str) -> str | None:
    """The path of a file that this machine's file system has; a table of another one needs its own reader."""
    if location.startswith("file:"):
        return unquote(urlsplit(location).path)
    # A warehouse may be given relative to this process; the JVM's directory is another one.
    return None if "://" in location else os.path.abspath(location)
