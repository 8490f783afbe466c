"""Check the state of a home: every run of every trace, now and at each savepoint, against what reads it today.

Runs are projected when they are read (`laminae.trace.evolution`): nothing has to be migrated, and nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from laminae.catalog import open_catalog
from laminae.catalog.location import find_home
from laminae.engine.changelogs import keeps_table
from laminae.errors import NotAvailable, RunDamaged, StateIncompatible
from laminae.spark.checkpoint.enabling import SETTING
from laminae.spark.checkpoint.session import session_of
from laminae.spark.storage import Storage
from laminae.spark.types import spark_schema
from laminae.spark.views.notes import NOTE
from laminae.spark.views.reading import relations_of
from laminae.spark.views.run import SHARDS, ViewRunner, with_weight
from laminae.spark.views.source_tables import source_table_traces
from laminae.spark.views.tree import Deltas, Place, aggregate_in
from laminae.state.compatibility import Kind
from laminae.state.home import HomeReport, TraceCheck
from laminae.trace.evolution import projection_onto
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.identity import operator_id, stateful
from laminae.views.kernels.aggregates import FloatTotal, ValueSet, groups_trace, values_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.views.tree import ViewState
    from laminae.trace.manifest import RunEntry
    from laminae.trace.spec import TraceSpec

NOW = "now"
UNUSED = "nothing reads it any more"


def check_home(home: str, *, catalog: str | None = None, spark: SparkSession | None = None) -> HomeReport:
    """Whether what a home keeps can be read by its sources and views as they are now, and after going back.

    A dry run: every file of state is opened and its checksum looked at; nothing is written.
    """
    directory = find_home(str(home)).directory
    if directory is None:
        raise NotAvailable(
            feature=f"Checking the state of {home}",
            problem="its files need a directory of this machine's file system",
            advice="Use a home on a local or mounted directory.",
        )
    opened = open_catalog(str(home), catalog)
    try:
        places = [(NOW, None), *((one.name, one.epoch) for one in opened.savepoints())]
        state = _HomeState(opened, Storage(directory), session_of(spark))
        checks = tuple(check for name, until in places for check in state.checks(name, until))
        return HomeReport(str(home), opened.settings().get(SETTING) == "true", checks)
    finally:
        opened.close()


@dataclass(frozen=True)
class _HomeState:
    catalog: Catalog
    storage: Storage
    spark: SparkSession

    @cached_property
    def sources(self) -> tuple[SourceRecord, ...]:
        return self.catalog.sources()

    @cached_property
    def views(self) -> tuple[ViewRecord, ...]:
        return self.catalog.views()

    @cached_property
    def place(self) -> Place:
        return Place(str(self.storage.home), int(self.catalog.settings().get(SHARDS, "1")), 0)

    def checks(self, place: str, until: int | None) -> Iterator[TraceCheck]:
        for source in self.sources:
            if keeps_table(source):
                yield from self._owned(source, place, until, source_table_traces(self.catalog, source, until))
        for view in self.views:
            yield from self._owned(view, place, until, self._traces(view))

    def _owned(
        self, owner: SourceRecord | ViewRecord, place: str, until: int | None, traces: dict[str, list[TraceSpec]]
    ) -> Iterator[TraceCheck]:
        """Each trace of each operator, over all shards."""
        runs: dict[tuple[str, str], list[RunEntry]] = {}
        for record in self.catalog.manifests(owner.id, until):
            for trace, written in Manifest.from_json(record.manifest).traces:
                runs.setdefault((record.operator, trace), []).extend(written)
        for (operator, trace), entries in sorted(runs.items()):
            spec = next((one for one in traces.get(operator, ()) if one.name == trace), None)
            kind, problem = (Kind.AS_IS, UNUSED) if spec is None else self._verdict(spec, entries)
            rows = sum(entry.rows for entry in entries)
            yield TraceCheck(place, owner.name, operator, trace, len(entries), rows, kind, problem)

    def _verdict(self, spec: TraceSpec, entries: Iterable[RunEntry]) -> tuple[Kind, str]:
        store, kind = RunStore.at(str(self.storage.home)), Kind.AS_IS
        for entry in entries:
            try:
                run = store.open(entry)
                if projection_onto(spec, run.batch.schema, run.path) is not None:
                    kind = Kind.AFTER_MIGRATION
            except (StateIncompatible, RunDamaged) as problem:
                return Kind.INCOMPATIBLE, str(problem)
        return kind, ""

    def _traces(self, view: ViewRecord) -> dict[str, list[TraceSpec]]:
        """What each stateful operator of a view keeps, by its id. Only types are needed, so no row is read."""
        state = ViewRunner(self.catalog, self.storage).state(view, self.sources, self.views)
        found: dict[str, list[TraceSpec]] = {}
        for operator in stateful(state.plan.root):
            frame = self._deltas(state).delta(operator.input)
            assert frame is not None  # every relation has a frame
            aggregate = aggregate_in(view.name, operator, frame)
            valued = [one for one in aggregate.accumulators if isinstance(one, FloatTotal | ValueSet)]
            found[operator_id(operator)] = [groups_trace(aggregate), *(values_trace(aggregate, one) for one in valued)]
        return found

    def _deltas(self, state: ViewState) -> Deltas:
        return Deltas(state, {name: self._frame(name) for name in relations_of(state)}, self.place)

    def _frame(self, name: str) -> DataFrame:
        """A relation without rows, as a view reads it."""
        source = next((one for one in self.sources if one.name.casefold() == name), None)
        if source is not None:
            return with_weight(self.spark.createDataFrame([], spark_schema(source.schema)))
        view = next(one for one in self.views if one.name.casefold() == name)
        state = ViewRunner(self.catalog, self.storage).state(view, self.sources, self.views)
        frame = self._deltas(state).delta(state.plan.root)
        assert frame is not None  # as above
        return frame.drop(NOTE)
