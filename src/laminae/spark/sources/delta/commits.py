"""The row changes of the commits of a Delta table, with the rules of its change data feed: change data files (cdc
actions) if a commit has them, else the data files that it added and removed. Read from the Delta log; no data file is
opened.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from laminae import durable
from laminae.errors import SnapshotExpired
from laminae.spark.sources.delta.schema import logical_names, through_schemas
from laminae.spark.sources.delta.table import opened
from laminae.spark.sources.lakehouse.table_files import Change, Done, TableFiles, numbered
from laminae.spark.sources.log_head import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.spark.sources.lakehouse.table_files import TableFile

LOG = "_delta_log"
COMMIT = re.compile(r"\d{20}\.json")
EXPIRED = "version {version}, which follows it, is no longer in the log"
WENT_BACK = "the table is at version {version} again: it was replaced"
DELETION_VECTOR = (
    "version {version} deletes rows by a deletion vector, which is not supported; set "
    "delta.enableDeletionVectors = false, "
    "or delta.enableChangeDataFeed = true"
)
ELSEWHERE = "version {version} has a file outside the local file system"


class CommitList(TableFiles):
    """The commits of one Delta table. Versions of its schema are stored next to the list, because the Delta log does
    not keep them for ever.
    """

    def __init__(self, directory: LogDirectory, path: str) -> None:
        super().__init__(directory, path, path)
        self._path = path

    def wanted(self, current: pa.Schema, ids: Sequence[int], is_first: bool) -> pa.Schema:
        return through_schemas(current, [self._schema(number) for number in ids], is_first)

    def _present(self) -> int | None:
        """Taken from the file names in the Delta log: opening the table would read the entries of all its files."""
        names = (entry.name for entry in os.scandir(os.path.join(self._path, LOG)))
        return max((int(name[:20]) for name in names if COMMIT.fullmatch(name)), default=None)

    def _since(self, last: TableFile | None, first: int) -> list[TableFile]:
        if last is None:
            return self._whole(first)
        present = self._present() or 0
        if present < last.snapshot:
            raise self._expired(last.snapshot, WENT_BACK.format(version=present))
        files: list[TableFile] = []
        schema = last.schema
        for version in range(last.snapshot + 1, present + 1):
            commit = self._commit(version, last.snapshot)
            if commit.schema is not None and commit.schema != self._schema(schema):
                schema = version
                self._keep_schema(version, commit.schema)
            done = commit.done(self._path, logical_names(self._schema(schema)))
            files += numbered(done, first + len(files), commit.time, version, version, schema)
        return files

    def _whole(self, first: int) -> list[TableFile]:
        """All files of the current version."""
        table = opened(self._path, self._directory.source)
        version, schema = table.version(), table.schema().to_json()
        self._keep_schema(version, schema)
        actions = pa.table(table.get_add_actions()).to_pylist()
        time = max((int(action["modification_time"]) for action in actions), default=0)
        has_vectors = "deletionVectors" in (table.protocol().reader_features or [])
        commit = _Commit(
            version,
            time,
            adds=[
                {
                    "path": action["path"],
                    "size": action["size_bytes"],
                    "partitionValues": action.get("partition", {}),
                    "deletionVector": has_vectors or None,
                }
                for action in actions
            ],
        )
        return numbered(commit.done(self._path, logical_names(schema)), first, time, version, version, version)

    def _commit(self, version: int, last: int) -> _Commit:
        file = os.path.join(self._path, LOG, f"{version:020}.json")
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise self._expired(last, EXPIRED.format(version=version)) from None
        return _commit(version, [json.loads(line) for line in lines if line])

    def _expired(self, version: int, problem: str) -> SnapshotExpired:
        return SnapshotExpired(source=self._directory.source, table=self.name, snapshot=version, problem=problem)

    def _schema(self, number: int) -> str:
        return Path(self._schema_file(number)).read_text(encoding="utf-8")

    def _keep_schema(self, number: int, text: str) -> None:
        durable.make_directory(os.path.dirname(self._schema_file(number)))
        with durable.replace(self._schema_file(number)) as out:
            out.write(text.encode())

    def _schema_file(self, number: int) -> str:
        return os.path.join(self._directory.path, "schemas", f"{number}.json")


@dataclass(frozen=True, slots=True)
class _Commit:
    """The actions of one commit that change rows; `schema` is set if the commit may have changed it."""

    version: int
    time: int
    adds: Sequence[Mapping[str, Any]] = ()
    removes: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[Mapping[str, Any]] = ()
    schema: str | None = None

    def done(self, root: str, names: Mapping[str, str]) -> list[Done]:
        if self.changes:
            return [self._file(action, Change.SAID, root, names) for action in self.changes]
        removed = [self._file(action, Change.REMOVED, root, names) for action in self.removes]
        return removed + [self._file(action, Change.ADDED, root, names) for action in self.adds]

    def _file(self, action: Mapping[str, Any], change: Change, root: str, names: Mapping[str, str]) -> Done:
        location, size = unquote(action["path"]), int(action.get("size") or 0)
        if location.startswith("file:"):
            location = unquote(urlsplit(action["path"]).path)
        reason = None
        if "://" in location:
            reason = ELSEWHERE.format(version=self.version)
        elif action.get("deletionVector"):
            reason = DELETION_VECTOR.format(version=self.version)
        values = action.get("partitionValues") or {}
        # An empty string is NULL: in partition paths, and so for a long time in the Delta log, NULL was written as "".
        partition = tuple((names.get(name, name), _text(value) or None) for name, value in values.items())
        path = os.path.join(root, location)
        return Done(Change.REFUSED if reason else change, location if reason else path, size, reason, partition)


def _commit(version: int, actions: Sequence[Mapping[str, Any]]) -> _Commit:
    def of(kind: str) -> list[Mapping[str, Any]]:
        return [action[kind] for action in actions if kind in action]

    times = [int(info.get("inCommitTimestamp") or info.get("timestamp") or 0) for info in of("commitInfo")]
    return _Commit(
        version,
        max(times, default=0),
        adds=[add for add in of("add") if add.get("dataChange", True)],
        removes=[remove for remove in of("remove") if remove.get("dataChange", True)],
        changes=of("cdc"),
        schema=next((metadata["schemaString"] for metadata in of("metaData")), None),
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def commit_list(settings: Mapping[str, str]) -> CommitList:
    return CommitList(LogDirectory(settings["source"], settings["directory"]), settings["path"])
