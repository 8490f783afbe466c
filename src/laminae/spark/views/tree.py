"""The operator tree of a view as Spark plans over the deltas of an epoch; `tables` has it as a table.

A delta has the operator's columns, `_weight`, and behind a stateful operator `_note` (see `notes`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.planned import mapped
from laminae.spark.types import arrow_type, spark_schema
from laminae.spark.views.batches import settle_batches
from laminae.spark.views.grouping import aggregate_over, grouped
from laminae.spark.views.guard import Guard, timed
from laminae.spark.views.notes import NOTE
from laminae.spark.views.tasks import AggregateShard, Closed, Emit, EmitStage, Held, out_schema
from laminae.trace.spec import WEIGHT
from laminae.views.emission import Kind, Strategy
from laminae.views.identity import operator_id
from laminae.views.kernels.changelog import OP
from laminae.views.kernels.distinct import distinct
from laminae.views.operators import Distinct, GroupBy, Linear, Named, Read, UnionAll
from laminae.views.planner import quoted
from laminae.views.windows import times_in
from laminae.views.wording import mentioned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.catalog.model import ManifestRecord
    from laminae.spark.views.plans import Based
    from laminae.views.kernels.aggregates import Aggregate
    from laminae.views.operators import Operator, ViewPlan

WINDOW_END = "_window_end"
NEVER = -(2**62)
Relations = dict[str, DataFrame]
"""By the name of a source or view, in lower case."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """What a view is and has: its plan, its id, its state by operator and shard, and where that was last changed."""

    owner: int
    name: str
    plan: ViewPlan
    expected: int = 0
    manifests: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    strategy: Strategy = Strategy(Kind.CHANGES)  # noqa: RUF009  # a frozen value
    bound: int | None = None
    """Up to which end of a window, or which tick, it has emitted what it held back."""
    closed: int | None = None
    """Windows that end at or before this take nothing any more."""
    fresh: frozenset[str] | None = None
    """Accumulators that alone are being filled, in a view that goes on with the state of another."""
    has_refused: bool = False
    """Whether its expressions have failed on rows: whoever reads it leaves these out as its epochs did."""

    def guard(self) -> Guard | None:
        return Guard() if self.has_refused else None

    def held(self) -> Held:
        if self.strategy.is_immediate:
            return Held()
        if self.plan.window is None or self.strategy.kind is Kind.EVERY:
            return Held(everything=True)
        return Held(after=NEVER if self.bound is None else self.bound)


def view_state(owner: int, name: str, plan: ViewPlan, expected: int, manifests: Sequence[ManifestRecord]) -> ViewState:
    found: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for each in manifests:
        found[each.operator][each.shard] = each.manifest
    return ViewState(owner, name, plan, expected, dict(found))


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when the tasks of an epoch write: the home, shards of its views, and the time in microseconds."""

    home: str
    shards: int
    time: int


def view_delta(
    view: ViewState,
    deltas: Relations,
    place: Place,
    directory: str,
    guard: Guard | None = None,
    based: Based | None = None,
    has_readers: bool = True,
) -> DataFrame | None:
    """What an epoch changes of a view, written to `directory` as it passes; None when it reads nothing of the epoch.

    Without readers the changes end there, and notes alone come out.
    """
    root, window = view.plan.root, view.plan.window
    emit = Emit(
        owner=view.owner,
        home=place.home,
        directory=directory,
        columns=tuple((name, name) for name in root.columns),
        key=view.plan.key,
        time=place.time,
        window_end=None if window is None else WINDOW_END,
        held=view.held(),
        passes_on=has_readers,
    )
    building = Deltas(view, deltas, place, guard, based)
    fused = _plain_columns(root)
    if isinstance(root, Linear) and fused is not None and isinstance(root.input, GroupBy):
        end = None if window is None else window.end
        return building.kept(root.input, replace(emit, columns=fused, window_end=end))
    if isinstance(root, Distinct) and window is None:
        return building.kept(root, emit)
    if isinstance(root, Linear) and window is not None and window.end in root.input.columns:
        root = replace(root, expressions=(*root.expressions, Named(WINDOW_END, quoted(window.end))))
    else:
        emit = replace(emit, window_end=None)
    frame = building.delta(root)
    if frame is None:
        return None
    fields = tuple(fields_of(frame))
    stage = EmitStage(emit, tuple(each for each in fields if each.name not in (WEIGHT, NOTE)))
    shown = [each for each in stage.fields if each.name != WINDOW_END]
    settle_batches(frame.sparkSession, frame.schema)
    return frame.mapInArrow(stage, spark_schema(out_schema(shown, timed=True)))


def emitted(view: ViewState, rows: DataFrame, place: Place, directory: str) -> DataFrame:
    """Rows with `_weight` as changes of the view, written as they pass; those of a key next to each other."""
    emit = Emit(
        owner=view.owner,
        home=place.home,
        directory=directory,
        columns=tuple((name, name) for name in view.plan.root.columns),
        key=view.plan.key,
        time=place.time,
        window_end=WINDOW_END if WINDOW_END in rows.columns else None,
    )
    stage = EmitStage(emit, tuple(each for each in fields_of(rows) if each.name not in (WEIGHT, NOTE)))
    shown = [each for each in stage.fields if each.name != WINDOW_END]
    settle_batches(rows.sparkSession, rows.schema)
    return rows.mapInArrow(stage, spark_schema(out_schema(shown, timed=True)))


@dataclass(frozen=True, slots=True)
class Deltas:
    view: ViewState
    deltas: Relations
    place: Place
    guard: Guard | None = None
    based: Based | None = None

    def delta(self, operator: Operator, wanted: frozenset[str] | None = None) -> DataFrame | None:
        match operator:
            case Read(relation=relation):
                found = self.deltas.get(relation.casefold())
                return None if found is None else _selected(found, operator)
            case Linear(input=below):
                frame = self.delta(below, read_by(operator, wanted))
                return None if frame is None else linear(frame, operator, self.guard, wanted)
            case UnionAll(inputs=inputs):
                parts = [part for part in map(self.delta, inputs) if part is not None]
                return union(parts, operator.columns) if parts else None
            case GroupBy() | Distinct():
                return self.kept(operator, None)

    def kept(self, operator: GroupBy | Distinct, emit: Emit | None) -> DataFrame | None:
        """A stateful operator: added up by the JVM, then its kernel on each shard, which may emit as well."""
        summed = self._summed(operator)
        if summed is None:
            return None
        aggregate, groups = summed
        name = operator_id(operator)
        stage = AggregateShard(
            aggregate,
            self.view.owner,
            name,
            self.place.home,
            self.view.manifests.get(name, {}),
            emit,
            self._closed(operator),
            self.view.fresh or frozenset(),
        )
        settle_batches(groups.sparkSession, groups.schema)
        found = mapped(groups, stage, spark_schema(stage.schema()))
        return found if self.guard is None else self.guard.keep(found)

    def _summed(self, operator: GroupBy | Distinct) -> tuple[Aggregate, DataFrame] | None:
        """What the operator adds up, and its groups; by a kept plan where there is one."""
        shards = self.place.shards
        if self.based is not None:

            def of_changes(relation: str, changes: DataFrame) -> tuple[Aggregate, DataFrame]:
                found = Deltas(self.view, {relation: changes}, self.place)._summed(operator)
                assert found is not None  # it reads the relation
                return found

            kept = self.based.grouped(self.view.owner, operator, shards, of_changes)
            if kept is not None:
                return kept
        frame = self.delta(operator.input, read_by(operator, None))
        if frame is None:
            return None
        aggregate = aggregate_in(self.view.name, operator, frame)
        return aggregate, grouped(frame, aggregate, shards, self.view.fresh)

    def _closed(self, operator: GroupBy | Distinct) -> Closed | None:
        window = self.view.plan.window
        if self.view.closed is None or window is None or not isinstance(operator, GroupBy):
            return None
        return Closed(window.end, self.view.closed) if window.end in operator.keys else None


def aggregate_in(view: str, operator: GroupBy | Distinct, frame: DataFrame) -> Aggregate:
    if isinstance(operator, GroupBy):
        return aggregate_over(view, operator, frame)
    names = operator.columns
    return distinct(view, [each for each in fields_of(frame) if each.name in names])


def read_by(operator: Operator, wanted: frozenset[str] | None) -> frozenset[str] | None:
    """The columns that an operator reads of its input so that these are there of itself, in lower case; None: all."""
    match operator:
        case Linear(expressions=expressions, condition=condition):
            made = [each.sql for each in expressions if wanted is None or each.name.casefold() in wanted]
            return mentioned(made if condition is None else [*made, condition])
        case GroupBy(keys=keys, calls=calls):
            return frozenset(name.casefold() for name in (*keys, *(call.argument or "" for call in calls)))
    return None


def linear(
    frame: DataFrame, operator: Linear, guard: Guard | None = None, wanted: frozenset[str] | None = None
) -> DataFrame:
    is_plain = operator.condition is None and all(_is_column(each.sql, frame) for each in operator.expressions)
    if guard is not None and not is_plain:
        return guard.linear(frame, operator, wanted)
    if NOTE in frame.columns and times_in(each.sql for each in operator.expressions):
        frame, operator = timed(frame, operator)
    has_notes, has_weight = NOTE in frame.columns, WEIGHT in frame.columns
    # Notes pass; what is computed of rows must not be computed of them.
    made = [
        f"CASE WHEN {NOTE} IS NULL THEN ({each.sql}) END" if has_notes and not _is_column(each.sql, frame) else each.sql
        for each in operator.expressions
    ]
    if operator.condition is not None:
        test = f"({operator.condition})"
        frame = frame.where(f"CASE WHEN {NOTE} IS NULL THEN {test} ELSE TRUE END" if has_notes else test)
    named = [f"{sql} AS {quoted(each.name)}" for sql, each in zip(made, operator.expressions, strict=True)]
    own = [name for name, there in ((WEIGHT, has_weight), (NOTE, has_notes)) if there]
    return frame.selectExpr(*named, *own)


def _is_column(sql: str, frame: DataFrame) -> bool:
    return sql.strip("`").replace("``", "`") in frame.columns


def _plain_columns(root: Operator) -> tuple[tuple[str, str], ...] | None:
    """(name, column of the input) of a projection that only picks columns; None when it does more."""
    if not isinstance(root, Linear) or root.condition is not None:
        return None
    known = root.input.columns
    found = [(each.name, each.sql.strip("`")) for each in root.expressions]
    return tuple(found) if all(source in known for _, source in found) else None


def _selected(frame: DataFrame, read: Read) -> DataFrame:
    own = [name for name in (WEIGHT, NOTE) if name in frame.columns]
    return frame.selectExpr(*read.selected, *own)


def union(parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
    own = [name for name in (WEIGHT, NOTE) if any(name in part.columns for part in parts)]
    aligned = [
        part.select(
            *(F.col(quoted(old)).alias(new) for old, new in zip(_data(part), columns, strict=True)),
            *(F.col(name) if name in part.columns else F.lit(None).cast("string").alias(name) for name in own),
        )
        for part in parts
    ]
    return reduce(DataFrame.unionAll, aligned)


def _data(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in (OP, WEIGHT, NOTE)]


def fields_of(frame: DataFrame) -> list[pa.Field]:
    return [pa.field(each.name, arrow_type(each.dataType)) for each in frame.schema.fields]
