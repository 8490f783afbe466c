"""The operations of a Database that need Spark or the files of its home: insert, start, run, query, replay, restore.

Spark is started only when an operation needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.location import find_home
from laminae.catalog.model import SourceRecord, ViewRecord
from laminae.engine.catalog_query.introspection import RELATIONS
from laminae.engine.evolution.added_columns import added_defaults
from laminae.engine.evolution.aliases import former_names_of
from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import LIVE
from laminae.errors import DeliveryFailed, InvalidOption, NotAvailable, ViewNotReady
from laminae.spark.catalyst.session import limit_avro_lengths, spark_session
from laminae.spark.catalyst.session_settings import SessionInForce, active, cloned
from laminae.spark.catalyst.spark_version import supported_session
from laminae.spark.catalyst.types import arrow_schema
from laminae.spark.driver.gc import collect
from laminae.spark.driver.lease import refuse_if_held, take_lease
from laminae.spark.driver.pipeline import Pipeline, now
from laminae.spark.driver.repair import repair
from laminae.spark.driver.savepoints import restore
from laminae.spark.driver.storage import Storage
from laminae.spark.query.large_values import value_beyond
from laminae.spark.query.parser import parse_on_spark
from laminae.spark.query.select import run_query
from laminae.spark.source_tables.source_rows import source_table
from laminae.spark.sources.push import append
from laminae.spark.views.late_rows import late_rows
from laminae.spark.views.reading.changes import changes_schema, kept_changes, relation_events
from laminae.spark.views.reading.dead_letters import all_dead_letters
from laminae.spark.views.reading.relation import changelog, table_of
from laminae.spark.views.validation import judge_view
from laminae.views.dependencies import CHANGES
from laminae.views.emit import shows_old_rows
from laminae.views.functions import allowed_functions
from laminae.zset import CdcOperation
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.port import Catalog
    from laminae.codec.row_check import Inserted
    from laminae.engine.engine import Engine
    from laminae.engine.epochs.epoch_plan import SourceCache
    from laminae.engine.retention.source_retention import Removal
    from laminae.schema.column import Path
    from laminae.spark.epoch.metrics import OnMetric
    from laminae.spark.epoch.runner import Replayed
    from laminae.spark.query.parser import ParsedQuery

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
    _in_force: SessionInForce | None = None
    _pipeline: Pipeline | None = None

    @property
    def spark(self) -> SparkSession:
        """A session with the settings of the home applied; a session that the user passed in is not modified."""
        return self._home_session().session()

    @property
    def has_session(self) -> bool:
        """Whether Spark is already running."""
        return self._in_force is not None or self.given is not None

    def judge_view(self, name: str, query: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> None:
        """Raise if Spark cannot run a view that is to be created."""
        judge_view(lambda: active(cloned(self.spark)), name, query, sources, views)

    def value_beyond(self, source: SourceRecord, path: Path, most: int) -> int | None:
        """A value of an integer column, in any row of the source, whose magnitude exceeds `most`; None if none does."""
        with active(self.spark) as session:
            rows = source_table(session, self.catalog, self.storage, source)
            return value_beyond(rows, source.schema, path, most)

    def _home_session(self) -> SessionInForce:
        if self._in_force is None:
            if self.given is None:
                base = spark_session(self.home, self.jars, self.config)
            else:
                base = supported_session(self.given)
                limit_avro_lengths(base)
            self._in_force = SessionInForce(base, self.catalog)
        return self._in_force

    def _driver_session(self) -> SparkSession:
        self._in_force = None
        return self._home_session().adopt()

    @property
    def storage(self) -> Storage:
        directory = find_home(self.home).directory
        if directory is None:
            raise NotAvailable(
                feature=f"Running the home {self.home}",
                problem="its files need a directory on a local or mounted file system",
                advice="Use a home in a local or mounted directory.",
            )
        return Storage(directory)

    def insert(self, source: SourceRecord, rows: object, strict: bool = False) -> Inserted:
        """Put rows into a push source, stamped with the version in force. Starts no Spark."""
        spec = spec_of(source)
        if not spec.connector.takes_inserts:
            raise InvalidOption(
                option="connector",
                owner=source.name,
                problem=f"rows are inserted into a push source, this one is {spec.connector.name}",
                advice="Create a source with connector = 'push'.",
            )
        # Rows of a source that evolves with its data are not stamped; they get the version in force at their position.
        # An epoch that finds a new field adds a version that applies from the epoch's first record.
        stamp = None if spec.evolves else source.version
        # Debezium events and records that name their own schema version need not match the schema in force.
        is_checked = spec.format.name == "json" and not spec.is_debezium and spec.version_field is None
        aliases = partial(former_names_of, self.catalog, source)
        return append(source, str(self.storage.home), rows, stamp, strict, is_checked, aliases)

    def source_cache(self, source_id: int) -> SourceCache | None:
        """What the pipeline of this process has learned of a source; None if it runs none."""
        return None if self._pipeline is None else self._pipeline.source_cache(source_id)

    def start(self, interval: str | None, on_metric: OnMetric | None = None) -> Pipeline:
        refuse_if_held(self.catalog, now())
        self._pipeline = Pipeline(
            self._driver_session(), self.catalog, self.engine, self.storage, interval, on_metric
        ).start()
        return self._pipeline

    def definitions_changed(self) -> None:
        """Notify the pipeline that runs in this process, so that it plans the next epochs ahead."""
        if self._pipeline is not None and not self._pipeline.is_stopped:
            self._pipeline.make_ready()

    def run(self) -> None:
        """Process everything that is available now, then return."""
        pipeline = self.start(interval=None)
        try:
            pipeline.await_termination()
        finally:
            pipeline.stop()
        self._raise_undelivered()

    def _raise_undelivered(self) -> None:
        """Raise if a sink is failing: a sink never stops a source, so only its catalog record shows the failure."""
        if failing := [sink for sink in self.catalog.sinks() if sink.problem is not None]:
            first = str(failing[0].problem).splitlines()[0]
            raise DeliveryFailed(sinks=", ".join(sink.name for sink in failing), problem=first)

    def replay(self, source: str) -> Replayed:
        """Replay the dead letters of a source while no other driver runs the home."""
        pipeline = Pipeline(self._driver_session(), self.catalog, self.engine, self.storage, None).hold()
        try:
            return pipeline.replay(source)
        finally:
            pipeline.stop()

    def dead_letters(self, source: str) -> DataFrame:
        letters = all_dead_letters(self.spark, self.catalog, self.storage)
        return letters.where(F.col("source_name") == source).drop("source_name")

    def changes(self, relation: SourceRecord | ViewRecord, since: int) -> pa.Table | DataFrame:
        """The changelog of a view or of a source that keeps a table, read from its files without Spark.

        An append or retract source stores no changelog, so its log is read again with Spark.
        """
        if isinstance(relation, SourceRecord) and not spec_of(relation).keeps_table:
            return relation_events(self.spark, self.catalog, self.storage, relation, since)
        advances = kept_changes(self.catalog, relation, since)
        if known := self.catalog.advances(relation.id):
            added = added_defaults(relation, self.catalog.sources(), self.catalog.views())
            return _shown(relation, changelog(self.storage, advances, known[-1].schema, added))
        if isinstance(relation, ViewRecord) and relation.state != LIVE:
            problem = relation.problem or "its backfill is running"
            raise ViewNotReady(view=relation.name, state=relation.state, problem=problem)
        schema = arrow_schema(changes_schema(self.spark, self.catalog, self.storage, relation))
        return changelog(self.storage, (), schema, {})

    def repair(self, source: SourceRecord) -> int | None:
        """Rebuild the checkpoint of a source. Needs the lease, but not Spark."""
        held = take_lease(self.catalog, None, now)
        try:
            return repair(self.catalog, self.storage, source)
        finally:
            held.release()

    def restore(self, name: str) -> int:
        """Restore a savepoint while no driver runs the home. Needs the lease, but not Spark."""
        held = take_lease(self.catalog, None, now)
        try:
            return restore(self.catalog, self.storage, name, held.token)
        finally:
            held.release()

    def collect(self, dry_run: bool) -> tuple[Removal, ...]:
        return collect(self.catalog, self.storage, now(), dry_run)

    def parse(self, text: str) -> ParsedQuery:
        """A SELECT as parsed by Spark, not yet resolved."""
        with active(self.spark) as session:
            return parse_on_spark(session, text)

    def explained(self, text: str) -> ParsedQuery:
        """Parse a SELECT for EXPLAIN, with the same checks of its functions as `query`."""
        query = self.parse(text)
        query.refuse_functions(allowed_functions(self.catalog.settings()))
        return query

    def query(self, query: ParsedQuery) -> DataFrame:
        query.refuse_functions(allowed_functions(self.catalog.settings()))
        if not query.is_built_in:
            # A cloned session has only the functions that were registered before it was cloned, so clone it again.
            self._in_force = None
        with active(self.spark) as session:
            return run_query(session, query, lambda spark, parts: self._relation(spark, "".join(parts[:-1]), parts[-1]))

    def _relation(self, spark: SparkSession, schema: str, name: str) -> DataFrame:
        view = self.catalog.view(name) if schema.casefold() != CATALOG else None
        if schema.casefold() == CHANGES:
            relation = view or self.engine.source(name)
            events = relation_events(spark, self.catalog, self.storage, relation)
            return events if _shows_old(relation) else events.where(F.col(OP) != BEFORE)
        if view is not None:
            return table_of(spark, self.catalog, self.storage, view)
        if schema.casefold() != CATALOG:
            return source_table(spark, self.catalog, self.storage, self.engine.source(name))
        if name.casefold() == "dead_letters":
            return all_dead_letters(spark, self.catalog, self.storage)
        if name.casefold() == "late_rows":
            return late_rows(spark, self.catalog, self.storage)
        return spark.createDataFrame(RELATIONS[name.casefold()](self.catalog))


def _shows_old(relation: SourceRecord | ViewRecord) -> bool:
    return isinstance(relation, SourceRecord) or shows_old_rows(relation.emit)


def _shown(relation: SourceRecord | ViewRecord, changes: pa.Table) -> pa.Table:
    return changes if _shows_old(relation) else changes.filter(pc.not_equal(changes.column(OP), BEFORE))
