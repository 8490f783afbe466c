"""What a Database does on Spark: insert, start, run, read tables, replay dead letters. Made when first needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.location import find_home
from laminae.catalog.model import SourceRecord, ViewRecord
from laminae.engine.added_columns import added_defaults
from laminae.engine.changelogs import keeps_table
from laminae.engine.options import option
from laminae.engine.relations import RELATIONS
from laminae.engine.view_order import LIVE
from laminae.errors import InvalidOption, NotAvailable, ViewNotReady
from laminae.spark.collection import collect
from laminae.spark.lease import refuse_if_held, take_lease
from laminae.spark.logs.push import append
from laminae.spark.pipeline import Pipeline, now
from laminae.spark.relations import run_query
from laminae.spark.repair import repair
from laminae.spark.savepoints import restore
from laminae.spark.session import spark_session
from laminae.spark.storage import Storage
from laminae.spark.tables import source_table
from laminae.spark.types import arrow_schema
from laminae.spark.views.events import changes_schema, kept_changes, relation_events
from laminae.spark.views.late import late_rows
from laminae.spark.views.reading import changelog, table_of
from laminae.spark.views.refused import all_dead_letters
from laminae.views.dependencies import CHANGES
from laminae.views.emission import shows_old_rows
from laminae.zset import CdcOperation
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp

    from laminae.catalog.port import Catalog
    from laminae.engine.collection import Removal
    from laminae.engine.engine import Engine
    from laminae.spark.epoch import Replayed
    from laminae.spark.metrics import OnMetric

CATALOG = "laminar_catalog"

BEFORE = CdcOperation.UPDATE_BEFORE.value


@dataclass(slots=True)
class Runtime:
    """One home on one Spark session."""

    home: str
    catalog: Catalog
    engine: Engine
    jars: tuple[str, ...]
    config: Mapping[str, str]
    given: SparkSession | None = None
    _spark: SparkSession | None = None
    _pipeline: Pipeline | None = None

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = self.given or spark_session(self.home, self.jars, self.config)
        return self._spark

    @property
    def storage(self) -> Storage:
        directory = find_home(self.home).directory
        if directory is None:
            raise NotAvailable(
                feature=f"Running the home {self.home}",
                problem="its files need a directory of this machine's file system",
                advice="Use a home on a local or mounted directory.",
            )
        return Storage(directory)

    def insert(self, source: SourceRecord, rows: object) -> int:
        """Put rows into a push source, stamped with the version in force. Starts no Spark."""
        connector = option(source.options, "connector")
        if connector != "push":
            raise InvalidOption(
                option="connector",
                owner=source.name,
                problem=f"rows are inserted into a push source, this one is {connector}",
                advice="Create a source with connector = 'push'.",
            )
        # Rows of a source that evolves by its data have the version in force where they stand: the epoch that finds a
        # new field takes on a version that holds from its own first record.
        stamp = source.version if option(source.options, "evolve") == "off" else None
        return append(source, str(self.storage.home), rows, stamp)

    def start(self, interval: str | None, on_metric: OnMetric | None = None) -> Pipeline:
        refuse_if_held(self.catalog, now())
        self._pipeline = Pipeline(self.spark, self.catalog, self.engine, self.storage, interval, on_metric).start()
        return self._pipeline

    def definitions_changed(self) -> None:
        """Tell the pipeline that runs in this process, so that its next epoch finds itself planned."""
        if self._pipeline is not None and not self._pipeline.is_stopped:
            self._pipeline.make_ready()

    def run(self) -> None:
        """Everything that is there now, then return."""
        pipeline = self.start(interval=None)
        try:
            pipeline.await_termination()
        finally:
            pipeline.stop()

    def replay(self, source: str) -> Replayed:
        """Replay the dead letters of a source while no other driver runs the home."""
        pipeline = Pipeline(self.spark, self.catalog, self.engine, self.storage, None).hold()
        try:
            return pipeline.replay(source)
        finally:
            pipeline.stop()

    def dead_letters(self, source: str) -> DataFrame:
        found = all_dead_letters(self.spark, self.catalog, self.storage)
        return found.where(F.col("source_name") == source).drop("source_name")

    def changes(self, relation: SourceRecord | ViewRecord, since: int) -> pa.Table | DataFrame:
        """The changelog of a view, or of a source's table, from its files without Spark; else the log is read again."""
        if isinstance(relation, SourceRecord) and not keeps_table(relation):
            return relation_events(self.spark, self.catalog, self.storage, relation, since)
        advances = kept_changes(self.catalog, relation, since)
        if known := self.catalog.advances(relation.id):
            added = added_defaults(relation, self.catalog.sources(), self.catalog.views())
            return _shown(relation, changelog(self.storage, advances, known[-1].schema, added))
        if isinstance(relation, ViewRecord) and relation.state != LIVE:
            problem = relation.problem or "it is being filled"
            raise ViewNotReady(view=relation.name, state=relation.state, problem=problem)
        schema = arrow_schema(changes_schema(self.spark, self.catalog, self.storage, relation))
        return changelog(self.storage, (), schema, {})

    def repair(self, source: SourceRecord) -> int | None:
        """Rebuild the checkpoint of a source; needs the lease, but no Spark."""
        held = take_lease(self.catalog, None, now)
        try:
            return repair(self.catalog, self.storage, source)
        finally:
            held.release()

    def restore(self, name: str) -> int:
        """Go back to a savepoint while no driver runs the home; needs the lease, but no Spark."""
        held = take_lease(self.catalog, None, now)
        try:
            return restore(self.catalog, self.storage, name, held.token)
        finally:
            held.release()

    def collect(self, dry_run: bool) -> tuple[Removal, ...]:
        return collect(self.catalog, self.storage, now(), dry_run)

    def query(self, query: exp.Query, relations: list[tuple[str, str]]) -> DataFrame:
        return run_query(self.spark, query, {key: self._relation(*key) for key in relations})

    def _relation(self, schema: str, name: str) -> DataFrame:
        view = self.catalog.view(name) if schema.casefold() != CATALOG else None
        if schema.casefold() == CHANGES:
            relation = view or self.engine.source(name)
            events = relation_events(self.spark, self.catalog, self.storage, relation)
            return events if _shows_old(relation) else events.where(F.col(OP) != BEFORE)
        if view is not None:
            return table_of(self.spark, self.catalog, self.storage, view)
        if schema.casefold() != CATALOG:
            return source_table(self.spark, self.catalog, self.storage, self.engine.source(name))
        if name.casefold() == "dead_letters":
            return all_dead_letters(self.spark, self.catalog, self.storage)
        if name.casefold() == "late_rows":
            return late_rows(self.spark, self.catalog, self.storage)
        return self.spark.createDataFrame(RELATIONS[name.casefold()](self.catalog))


def _shows_old(relation: SourceRecord | ViewRecord) -> bool:
    return isinstance(relation, SourceRecord) or shows_old_rows(relation.emit)


def _shown(relation: SourceRecord | ViewRecord, changes: pa.Table) -> pa.Table:
    return changes if _shows_old(relation) else changes.filter(pc.not_equal(changes.column(OP), BEFORE))
