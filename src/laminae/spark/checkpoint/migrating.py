"""Migrate a checkpoint: check, copy, rewrite, verify, rename. The old one is read and never written.

Everything is made under a temporary name beside the target; a crash leaves that behind, and the next run begins anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.errors import CheckpointExists, LaminaeError, MigrationFailed, StateEvolutionDisabled, StateRefused
from laminae.spark.checkpoint.checking import NOTE, Checked, checked
from laminae.spark.checkpoint.counting import row_counts
from laminae.spark.checkpoint.enabling import is_enabled
from laminae.spark.checkpoint.problems import told
from laminae.spark.checkpoint.rewriting import rewrite
from laminae.spark.checkpoint.running import refuse_if_moved
from laminae.spark.checkpoint.session import own_session, session_of
from laminae.spark.checkpoint.steps import OnStep, silent
from laminae.state.checkpoint.buffers import Assumptions
from laminae.state.checkpoint.model import HDFS, PROVIDER, ROCKSDB
from laminae.state.checkpoint.parsing import with_setting, with_store_ids
from laminae.state.checkpoint.reading import read_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.files import HadoopFiles
    from laminae.spark.checkpoint.query import Build
    from laminae.state.checkpoint.report import CheckReport

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
WRITING = {
    PROVIDER: ROCKSDB,
    # A store without rows must still be written in every partition, and adaptive execution leaves out what is empty.
    "spark.sql.adaptive.enabled": "false",
    # To keep the number of rows, RocksDB looks up every key that is put. Here each comes once, and is counted anyway;
    # a query that wants the number counts when it first loads a snapshot without one.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # A changelog of all rows would be replayed, put by put, by whoever reads the new state; a snapshot is loaded.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class Migrated:
    """A new checkpoint that is there: what was decided, and the rows it has."""

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
    """Make a new checkpoint at `target` with all state of the old one, for the query of `build(spark)`.

    It keeps the query id, offsets, batch ids and every row; `StateRefused` has every reason why it cannot. To ask for
    it is to enable it, unless `enable` or the setting state.schema-evolution.enable, of the session or SET in `home`,
    says false.
    """
    session = session_of(spark)
    assumed = Assumptions(same_aggregates, add_aggregates)
    with checked(session, checkpoint, build, from_build, assumed, on_step) as found:
        if found.report.is_compatible and not is_enabled(session, enable, home, unless_said=True):
            raise StateEvolutionDisabled(checkpoint=found.report.checkpoint, changes=found.report.changed())
        return carried_over(session, found, target, on_step)


def carried_over(spark: SparkSession, found: Checked, target: str, on_step: OnStep) -> Migrated:
    """Carry out what a check has found possible."""
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
        made = _make(spark, found, working, location, on_step)
        refuse_if_moved(files, found.old.location, found.logs)
    except LaminaeError:
        files.delete(working)
        raise
    except Exception as problem:
        files.delete(working)
        raise MigrationFailed(checkpoint=report.checkpoint, problem=told(problem)) from problem
    on_step("put it in its place", 0, 1)
    if not files.rename(working, location):
        raise CheckpointExists(checkpoint=location)
    return Migrated(location, made, made.rows)


def working_place(target: str) -> str:
    """Where a checkpoint is made: beside its target, so that putting it there is one step."""
    parent, _, name = target.rpartition("/")
    return f"{parent}/.{name}.laminae"


def _make(spark: SparkSession, found: Checked, working: str, target: str, on_step: OnStep) -> CheckReport:
    """The report with the rows that were carried over."""
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
    """What Spark wrote when it planned the new query: metadata of operators, and the schemas of their state."""
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
    """Format 2 names its schema files by absolute path: first where they are made, at the end where they will be."""
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
    """As many rows in every store and column family as were read of the old one."""
    counts = row_counts(spark, read_checkpoint(files, working))
    for plan in report.families:
        rows = counts.get((plan.operator, plan.store, plan.family), 0)
        if rows != plan.rows:
            lost = f"{plan.path} had {plan.rows} rows and has {rows}"
            raise MigrationFailed(checkpoint=report.checkpoint, problem=lost)
