"""The operator tree of a view as Spark plans: over deltas in an epoch, and as a table when somebody asks for its rows.

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

from laminae.spark.types import arrow_type, spark_schema
from laminae.spark.views.grouping import aggregate_over, grouped
from laminae.spark.views.notes import NOTE
from laminae.spark.views.tasks import AggregateShard, Closed, Emit, EmitStage, Held, ShardRows, out_schema
from laminae.trace.spec import WEIGHT
from laminae.views.emission import Kind, Strategy
from laminae.views.identity import operator_id, stateful
from laminae.views.kernels.changelog import OP
from laminae.views.kernels.distinct import distinct
from laminae.views.operators import Distinct, GroupBy, Linear, Named, Read, UnionAll
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import ManifestRecord
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

    def held(self) -> Held:
        if self.strategy.kind is Kind.ON_UPDATE:
            return Held(leaves_out_old=True)
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


def view_delta(view: ViewState, deltas: Relations, place: Place, directory: str) -> DataFrame | None:
    """What an epoch changes of a view, written to `directory` as it passes; None when it reads nothing of the epoch."""
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
    )
    building = _Deltas(view, deltas, place)
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
    fields = tuple(_fields(frame))
    stage = EmitStage(emit, tuple(each for each in fields if each.name not in (WEIGHT, NOTE)))
    shown = [each for each in stage.fields if each.name != WINDOW_END]
    return frame.mapInArrow(stage, spark_schema(out_schema(shown, timed=True)))


def view_table(spark: SparkSession, view: ViewState, tables: Relations, place: Place) -> DataFrame:
    """The rows that a view has in this state. Relations are read only where no state stands before them."""
    return _Tables(spark, view, tables, place).table(view.plan.root)


def held_rows(
    spark: SparkSession, view: ViewState, tables: Relations, place: Place, after: int, until: int
) -> DataFrame:
    """The rows of windows that end after one time and at or before another, with the end as `_window_end`."""
    root, window = view.plan.root, view.plan.window
    if window is None or not isinstance(root, Linear) or window.end not in root.input.columns:
        raise AssertionError(f"the rows of view {view.name} have no window")
    wider = replace(root, expressions=(*root.expressions, Named(WINDOW_END, quoted(window.end))))
    found = _Tables(spark, view, tables, place).table(wider)
    end = F.unix_micros(F.col(WINDOW_END).cast("timestamp"))
    return found.where((end > after) & (end <= until))


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
        held=Held(leaves_out_old=view.strategy.kind is Kind.ON_UPDATE),
    )
    stage = EmitStage(emit, tuple(each for each in _fields(rows) if each.name not in (WEIGHT, NOTE)))
    shown = [each for each in stage.fields if each.name != WINDOW_END]
    return rows.mapInArrow(stage, spark_schema(out_schema(shown, timed=True)))


def net_change(old: DataFrame, new: DataFrame, key: Sequence[str] | None) -> DataFrame:
    """What to add and take away to come from one table to the other; of a key the old row first."""
    names = [quoted(name) for name in new.columns]
    both = new.withColumn(WEIGHT, F.lit(1)).unionAll(old.select(*names).withColumn(WEIGHT, F.lit(-1)))
    added = both.groupBy(*names).agg(F.sum(WEIGHT).cast("bigint").alias(WEIGHT)).where(f"{WEIGHT} <> 0")
    if key is None:
        return added
    keys = [quoted(name) for name in key]
    return added.repartition(*keys).sortWithinPartitions(*keys, WEIGHT) if keys else added.repartition(1).sort(WEIGHT)


@dataclass(frozen=True, slots=True)
class _Deltas:
    view: ViewState
    deltas: Relations
    place: Place

    def delta(self, operator: Operator) -> DataFrame | None:
        match operator:
            case Read(relation=relation):
                found = self.deltas.get(relation.casefold())
                return None if found is None else _selected(found, operator)
            case Linear(input=below):
                frame = self.delta(below)
                return None if frame is None else _linear(frame, operator)
            case UnionAll(inputs=inputs):
                parts = [part for part in map(self.delta, inputs) if part is not None]
                return _union(parts, operator.columns) if parts else None
            case GroupBy() | Distinct():
                return self.kept(operator, None)

    def kept(self, operator: GroupBy | Distinct, emit: Emit | None) -> DataFrame | None:
        """A stateful operator: added up by the JVM, then its kernel on each shard, which may emit as well."""
        frame = self.delta(operator.input)
        if frame is None:
            return None
        aggregate = _aggregate(self.view.name, operator, frame)
        name = operator_id(operator)
        stage = AggregateShard(
            aggregate,
            self.view.owner,
            name,
            self.place.home,
            self.view.manifests.get(name, {}),
            emit,
            self._closed(operator),
        )
        return grouped(frame, aggregate, self.place.shards).mapInArrow(stage, spark_schema(stage.schema()))

    def _closed(self, operator: GroupBy | Distinct) -> Closed | None:
        window = self.view.plan.window
        if self.view.closed is None or window is None or not isinstance(operator, GroupBy):
            return None
        return Closed(window.end, self.view.closed) if window.end in operator.keys else None


def late_rows(view: ViewState, deltas: Relations, place: Place) -> DataFrame | None:
    """Rows of which every window is closed: `window_end` of the last, `row` as JSON, `weight`. None: no rows to find.

    Behind a stateful operator there are no rows of a source any more, only changes of a view.
    """
    group = next((each for each in stateful(view.plan.root) if isinstance(each, GroupBy)), None)
    window = view.plan.window
    if group is None or window is None or not isinstance(group.input, Linear) or stateful(group.input):
        return None
    before = group.input
    rows = _Deltas(view, deltas, place).delta(before.input)
    if rows is None:
        return None
    end = next(each.sql for each in before.expressions if each.name == window.end)
    if before.condition is not None:
        rows = rows.where(before.condition)
    data = ", ".join(quoted(name) for name in before.input.columns)
    marked = rows.selectExpr("*", f"to_json(struct({data})) AS _row", "monotonically_increasing_id() AS _id")
    ends = marked.selectExpr(f"{end} AS _end", "_row", "_id", WEIGHT)
    last = ends.groupBy("_id", "_row", WEIGHT).agg(F.max("_end").alias("window_end"))
    late = last.where(F.col("window_end") <= F.timestamp_micros(F.lit(view.closed)))
    return late.select("window_end", F.col("_row").alias("row"), F.col(WEIGHT).alias("weight"))


@dataclass(frozen=True, slots=True)
class _Tables:
    spark: SparkSession
    view: ViewState
    tables: Relations
    place: Place

    def table(self, operator: Operator) -> DataFrame:
        match operator:
            case Read(relation=relation):
                return self.tables[relation.casefold()].selectExpr(*operator.selected)
            case Linear(input=below):
                return _linear(self.table(below), operator)
            case UnionAll(inputs=inputs):
                return _union([self.table(each) for each in inputs], operator.columns)
            case GroupBy() | Distinct():
                return self.kept(operator)

    def kept(self, operator: GroupBy | Distinct) -> DataFrame:
        # Only the types of what is below are needed: the rows are in the state.
        aggregate = _aggregate(self.view.name, operator, self.table(operator.input))
        name = operator_id(operator)
        rows = ShardRows(aggregate, self.view.owner, name, self.place.home, self.view.manifests.get(name, {}))
        shards = self.spark.range(0, self.place.shards, 1, self.place.shards)
        return shards.mapInArrow(rows, spark_schema(rows.schema()))


def _aggregate(view: str, operator: GroupBy | Distinct, frame: DataFrame) -> Aggregate:
    if isinstance(operator, GroupBy):
        return aggregate_over(view, operator, frame)
    names = operator.columns
    return distinct(view, [each for each in _fields(frame) if each.name in names])


def _linear(frame: DataFrame, operator: Linear) -> DataFrame:
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


def _union(parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
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


def _fields(frame: DataFrame) -> list[pa.Field]:
    return [pa.field(each.name, arrow_type(each.dataType)) for each in frame.schema.fields]
