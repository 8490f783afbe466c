"""The row changes of the snapshots of an Iceberg table, as data files that they added and removed. No data file is
opened.

A snapshot that only rewrote files (compaction) changes no rows. A change that cannot be expressed by whole files, such
as a delete file, is refused with the reason.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from laminae.errors import SnapshotExpired
from laminae.spark.sources.lakehouse.table_files import Change, Done, TableFile, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from laminae.spark.sources.iceberg.table import IcebergTable

EXPIRED = "snapshots that came after it have expired"
LEFT = "the current table does not descend from it (the table was rolled back or replaced, or snapshots expired)"
DELETE_FILE = (
    "snapshot {snapshot} deletes rows by a delete file (merge-on-read), which is not supported; use copy-on-write"
)
NO_PARQUET = "snapshot {snapshot} has a file of format {format}, and only Parquet is supported"
ELSEWHERE = "snapshot {snapshot} has a file outside the local file system"


def files_since(table: Table, name: IcebergTable, last: TableFile | None, first: int) -> list[TableFile]:
    """The changes of every snapshot after `last`, numbered from `first`. Without `last`: all files of the current
    snapshot.
    """
    current = table.current_snapshot()
    if current is None:
        return []
    if last is None:
        return _numbered(table, current, _present(table, current), first)
    files: list[TableFile] = []
    for snapshot in _behind(table, name, last):
        files += _numbered(table, snapshot, _done_by(table, snapshot), first + len(files))
    return files


def _behind(table: Table, name: IcebergTable, last: TableFile) -> list[Snapshot]:
    """The snapshots after `last` up to the current one, oldest first."""
    snapshots: list[Snapshot] = []
    wanted = table.metadata.current_snapshot_id
    while wanted != last.snapshot:
        snapshot = None if wanted is None else table.snapshot_by_id(wanted)
        if snapshot is None:
            break
        snapshots.append(snapshot)
        wanted = snapshot.parent_snapshot_id
    # When a snapshot expires, its children may lose their parent id. The snapshot with the next sequence number still
    # follows it directly.
    if wanted != last.snapshot and snapshots[-1].sequence_number != last.sequence + 1:
        problem = EXPIRED if table.snapshot_by_id(last.snapshot) is None else LEFT
        raise SnapshotExpired(source=name.owner, table=name.name, snapshot=last.snapshot, problem=problem)
    return snapshots[::-1]


def _numbered(table: Table, snapshot: Snapshot, done: Sequence[Done], first: int) -> list[TableFile]:
    schema = table.metadata.current_schema_id if snapshot.schema_id is None else snapshot.schema_id
    sequence = snapshot.sequence_number or 0
    return numbered(done, first, snapshot.timestamp_ms, snapshot.snapshot_id, sequence, schema)


def _present(table: Table, snapshot: Snapshot) -> list[Done]:
    """The live files of a snapshot, oldest first."""
    manifests = snapshot.manifests(table.io)
    live = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]
    return [_came(entry.data_file, snapshot) for entry in sorted(live, key=lambda entry: entry.sequence_number or 0)]


def _done_by(table: Table, snapshot: Snapshot) -> list[Done]:
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus
    from pyiceberg.table.snapshots import Operation

    if snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE:
        return []
    changes = []
    for entry in _entries(table, snapshot):
        if entry.status is ManifestEntryStatus.ADDED:
            changes.append(_came(entry.data_file, snapshot))
        elif entry.status is ManifestEntryStatus.DELETED and entry.data_file.content is DataFileContent.DATA:
            changes.append(_went(entry.data_file, snapshot))
    return changes


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
    """The path of a file on this machine's file system; None for other file systems, which need another reader."""
    if location.startswith("file:"):
        return unquote(urlsplit(location).path)
    # A warehouse path may be relative to this process; the JVM has another working directory.
    return None if "://" in location else os.path.abspath(location)
