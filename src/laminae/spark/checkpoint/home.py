"""Check the state of a home: every run of every trace, now and at each savepoint, against its current readers.

Runs are projected when they are read (`laminae.trace.evolution`): no migration is needed, and nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from laminae.catalog import open_catalog
from laminae.catalog.location import find_home
from laminae.engine.source_spec import spec_of
from laminae.errors import NotAvailable, RunDamaged, StateIncompatible
from laminae.spark.catalyst.types import spark_schema
from laminae.spark.checkpoint.session import SETTING, session_of
from laminae.spark.driver.storage import Storage
from laminae.spark.source_tables.kept_table import source_table_traces
from laminae.spark.tasks.task_reports import REPORT
from laminae.spark.views.join import equi_join, join_types
from laminae.spark.views.plan import Deltas, ShardPlacement, aggregate_in
from laminae.spark.views.reading.relation import relations_of
from laminae.spark.views.runner import SHARDS, ViewRunner, with_weight
from laminae.state.compatibility import Kind
from laminae.state.home import HomeReport, TraceCheck
from laminae.trace.evolution import projection_onto
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.identity import operator_id, stateful
from laminae.views.kernels.group_by.kernel import GroupByKernel
from laminae.views.kernels.join.kernel import JoinKernel
from laminae.views.operators import Join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.views.plan import ViewState
    from laminae.trace.manifest import RunEntry
    from laminae.trace.spec import TraceSpec
    from laminae.views.kernels.step import Kernel
    from laminae.views.operators import Stateful

NOW = "now"
UNUSED = "nothing reads it"


def check_home(home: str, *, catalog: str | None = None, spark: SparkSession | None = None) -> HomeReport:
    """Whether the current sources and views can read the state of a home, now and after a restore of each savepoint.

    A dry run: every state file is opened and its checksum verified; nothing is written.
    """
    directory = find_home(str(home)).directory
    if directory is None:
        raise NotAvailable(
            feature=f"Checking the state of {home}",
            problem="its files need a directory on a local or mounted file system",
            advice="Use a home in a local or mounted directory.",
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
    def placement(self) -> ShardPlacement:
        return ShardPlacement(str(self.storage.home), int(self.catalog.settings().get(SHARDS, "1")), 0)

    def checks(self, place: str, until: int | None) -> Iterator[TraceCheck]:
        for source in self.sources:
            if spec_of(source).keeps_table:
                yield from self._owned(source, place, until, source_table_traces(self.catalog, source, until))
        for view in self.views:
            yield from self._owned(view, place, until, self._traces(view))

    def _owned(
        self, owner: SourceRecord | ViewRecord, place: str, until: int | None, traces: dict[str, list[TraceSpec]]
    ) -> Iterator[TraceCheck]:
        """Check each trace of each operator, over all shards."""
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
        """The traces of each stateful operator of a view, by operator id. Only types are needed, so no row is read."""
        state = ViewRunner(self.catalog, self.storage).state(view, self.sources, self.views)
        traces: dict[str, list[TraceSpec]] = {}
        for operator in stateful(state.plan.root):
            traces[operator_id(operator)] = self._kernel(state, operator).traces(())
        return traces

    def _kernel(self, state: ViewState, operator: Stateful) -> Kernel:
        assert state.inputs is not None  # always set by ViewRunner.state
        if isinstance(operator, Join):
            left, right = (state.inputs.schema(self.spark, side) for side in (operator.left, operator.right))
            types = join_types(self.spark, operator, left, right)
            return JoinKernel(equi_join(state.name, operator, types, None))
        frame = self._deltas(state).delta(operator.input)
        assert frame is not None  # every relation has a frame
        return GroupByKernel(aggregate_in(state.name, operator, frame))

    def _deltas(self, state: ViewState) -> Deltas:
        return Deltas(state, {name: self._frame(name) for name in relations_of(state)}, self.placement)

    def _frame(self, name: str) -> DataFrame:
        """An empty DataFrame with the schema of a relation as a view reads it."""
        source = next((one for one in self.sources if one.name.casefold() == name), None)
        if source is not None:
            return with_weight(self.spark.createDataFrame([], spark_schema(source.schema)))
        view = next(one for one in self.views if one.name.casefold() == name)
        state = ViewRunner(self.catalog, self.storage).state(view, self.sources, self.views)
        frame = self._deltas(state).delta(state.plan.root)
        assert frame is not None  # every relation has a frame
        return frame.drop(REPORT)
