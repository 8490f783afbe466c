"""Migrate a checkpoint: check, copy, rewrite, verify, rename. The old checkpoint is never written.

The new checkpoint is built in a temporary directory next to the target. A crash leaves that directory behind; the next
run deletes it and starts over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.errors import CheckpointExists, LaminaeError, MigrationFailed, StateEvolutionDisabled, StateRefused
from laminae.spark.catalyst.spark_errors import root_cause
from laminae.spark.checkpoint.active_query import refuse_if_moved
from laminae.spark.checkpoint.check import NOTE, Checked, checked
from laminae.spark.checkpoint.progress import OnStep, silent
from laminae.spark.checkpoint.rewrite import rewrite
from laminae.spark.checkpoint.session import is_enabled, own_session, session_of
from laminae.spark.checkpoint.state_rows import row_counts
from laminae.state.checkpoint.buffers import Assumptions
from laminae.state.checkpoint.model import HDFS, PROVIDER, ROCKSDB
from laminae.state.checkpoint.parsing import with_setting, with_store_ids
from laminae.state.checkpoint.reading import read_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.spark.catalyst.hadoop_files import HadoopFiles
    from laminae.spark.checkpoint.query import Build
    from laminae.state.checkpoint.report import CheckReport

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
WRITING = {
    PROVIDER: ROCKSDB,
    # An empty store must still be written in every partition, and adaptive execution skips empty partitions.
    "spark.sql.adaptive.enabled": "false",
    # To track the number of rows, the store looks up every key before a put. Here each key is put once and counted
    # anyway; a query that needs the number counts the rows when it first loads a snapshot without one.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Readers of the new state would replay a changelog of all rows put by put; a snapshot is loaded directly.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class Migrated:
    """A migrated checkpoint: its location, the report behind it, and its number of rows."""

    checkpoint: str
    report: CheckReport
    rows: int


def migrate_checkpoint(
    checkpoint: str,
    target: str,
    build: Build,
    *,
    spark: SparkSession | None = None,
    from_build: Build | None = None,
    same_aggregates: bool = False,
    add_aggregates: bool = False,
    enable: bool | None = None,
    home: str | None = None,
    on_step: OnStep = silent,
) -> Migrated:
    """Create a checkpoint at `target` with all state of the old one, for the query of `build(spark)`.

    It keeps the query id, offsets, batch ids and every row. If that is impossible, `StateRefused` lists all reasons.
    Migration is enabled unless `enable`, or the setting state.schema-evolution.enable of the session or of `home`, is
    false.
    """
    session = session_of(spark)
    assumed = Assumptions(same_aggregates, add_aggregates)
    with checked(session, checkpoint, build, from_build, assumed, on_step) as result:
        if result.report.is_compatible and not is_enabled(session, enable, home, unless_said=True):
            raise StateEvolutionDisabled(checkpoint=result.report.checkpoint, changes=result.report.changed())
        return carried_over(session, result, target, on_step)


def carried_over(spark: SparkSession, found: Checked, target: str, on_step: OnStep) -> Migrated:
    """Run the migration that a check has found possible; raise `StateRefused` if it has not."""
    files, report = found.files, found.report
    location = files.qualified(str(target))
    if files.exists(location):
        raise CheckpointExists(checkpoint=location)
    if not report.is_compatible:
        reasons = "\n".join(f"- {reason}" for reason in report.reasons)
        raise StateRefused(checkpoint=report.checkpoint, reasons=reasons)
    working = working_place(location)
    files.delete(working)
    try:
        final_report = _make(spark, found, working, location, on_step)
        refuse_if_moved(files, found.old.location, found.logs)
    except LaminaeError:
        files.delete(working)
        raise
    except Exception as problem:
        files.delete(working)
        raise MigrationFailed(checkpoint=report.checkpoint, problem=root_cause(problem)) from problem
    on_step("move it to the target", 0, 1)
    if not files.rename(working, location):
        raise CheckpointExists(checkpoint=location)
    return Migrated(location, final_report, final_report.rows)


def working_place(target: str) -> str:
    """The temporary directory of a migration: next to the target, so that one rename moves it there."""
    parent, _, name = target.rpartition("/")
    return f"{parent}/.{name}.laminae"


def _make(spark: SparkSession, found: Checked, working: str, target: str, on_step: OnStep) -> CheckReport:
    """Build the new checkpoint; return the report with the numbers of migrated rows."""
    files, old = found.files, found.old
    on_step("copy offsets, commits and sources", 0, 1)
    files.make(working)
    for name in files.names(old.location):
        if name not in ("state", NOTE.split("/")[0]) and not name.endswith(".crc"):
            files.copy(f"{old.location}/{name}", f"{working}/{name}")
    _install_schemas(found, working)
    if old.provider == HDFS:
        for batch in (old.batch, *old.planned):
            path = f"{working}/offsets/{batch}"
            files.write(path, with_setting(files.read(path) or b"", PROVIDER, ROCKSDB))
    session = own_session(spark, {**WRITING, FORMAT: "2" if old.has_store_ids else "1"})
    done = rewrite(session, old, working, found.report.families, on_step)
    if done.store_ids is not None:
        path = f"{working}/commits/{old.batch}"
        files.write(path, with_store_ids(files.read(path) or b"", done.store_ids))
    on_step("count the rows of the new state", 0, 1)
    report = found.with_rows(done.counts)
    _verify(files, session, report, working)
    _name_schemas(found, working, target)
    files.write(f"{working}/{NOTE}", found.probe.planned.note.to_bytes())
    return report


def _install_schemas(found: Checked, working: str) -> None:
    """Copy what Spark wrote when it planned the new query: operator metadata and state schemas."""
    files, probe = found.files, found.probe
    for operator in probe.planned.operators:
        root, source = f"{working}/state/{operator.id}", f"{probe.directory}/state/{operator.id}"
        files.make(root)
        files.copy(f"{source}/_metadata", f"{root}/_metadata")
        if operator.metadata_format == "v2":
            files.copy(f"{source}/_stateSchema", f"{root}/_stateSchema")
            continue
        for store in operator.stores:
            for path in store.schema_files:
                inner = path.removeprefix(source)
                files.write(f"{root}{inner}", files.read(path) or b"")
    _name_schemas(found, working, working)


def _name_schemas(found: Checked, working: str, place: str) -> None:
    """Set the absolute schema file paths of metadata format 2: first in the working directory, then in the target."""
    files = found.files
    for operator in found.probe.planned.operators:
        if operator.metadata_format != "v2":
            continue
        path = f"{working}/state/{operator.id}/_metadata/v2/0"
        version, _, body = (files.read(path) or b"").decode().partition("\n")
        entry = json.loads(body)
        for store in entry["stateStoreInfo"]:
            root = f"{place}/state/{operator.id}/_stateSchema/{store['storeName']}"
            names = (one.rsplit("/", 1)[-1] for one in store["stateSchemaFilePaths"])
            store["stateSchemaFilePaths"] = [f"{root}/{name}" for name in names]
        files.write(path, f"{version}\n{json.dumps(entry, separators=(',', ':'))}".encode())


def _verify(files: HadoopFiles, spark: SparkSession, report: CheckReport, working: str) -> None:
    """Raise unless every store and column family has as many rows as were read from the old checkpoint."""
    counts = row_counts(spark, read_checkpoint(files, working))
    for plan in report.families:
        rows = counts.get((plan.operator, plan.store, plan.family), 0)
        if rows != plan.rows:
            lost = f"{plan.path} had {plan.rows} rows and has {rows}"
            raise MigrationFailed(checkpoint=report.checkpoint, problem=lost)
