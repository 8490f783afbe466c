"""Translates the operator tree of a view into Spark plans over the deltas of an epoch.

A delta has the operator's columns, `_weight` and, above a stateful operator, a report column (see `task_reports`).
`reading.table` translates the same tree into the rows of the view.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.identifiers import unquoted
from laminae.schema.nesting import nullable_inside
from laminae.spark.catalyst.plans.prepared_frame import map_in_arrow, mapped
from laminae.spark.catalyst.types import arrow_type, spark_schema
from laminae.spark.tasks.arrow_batches import limit_batches
from laminae.spark.tasks.emit import Emit, HeldChanges
from laminae.spark.tasks.shard_task import EmitTask, OperatorState, ShardTask
from laminae.spark.tasks.task_reports import REPORT
from laminae.spark.views.consolidation import consolidated
from laminae.spark.views.error_isolation import ErrorIsolation, timed
from laminae.spark.views.group_by import aggregate_over, grouped
from laminae.spark.views.join import equi_join, join_types, tagged_union
from laminae.spark.views.storable import refuse_unstorable
from laminae.trace.spec import WEIGHT
from laminae.views.accumulation import refuse_unequal_keys
from laminae.views.emit import Kind, Strategy
from laminae.views.expression_text import mentioned
from laminae.views.identity import operator_id, stateful
from laminae.views.kernels.group_by.aggregates import distinct
from laminae.views.kernels.group_by.kernel import ClosedWindows, GroupByKernel
from laminae.views.kernels.join.kernel import JoinKernel
from laminae.views.operators import Distinct, GroupBy, Join, Linear, Named, Read, UnionAll, inputs_of
from laminae.views.planner import quoted
from laminae.views.windows import times_in
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from laminae.catalog.model import ManifestRecord
    from laminae.spark.views.group_plans import Based
    from laminae.spark.views.input_types import InputTypes
    from laminae.views.kernels.group_by.aggregates import Aggregate
    from laminae.views.operators import Operator, Stateful, ViewPlan

WINDOW_END = "__laminae_window_end"
NEVER = -(2**62)
Relations = dict[str, DataFrame]
"""DataFrames by the name of a source or view, in lower case."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """A view's plan, its id, its manifests by operator and shard, and `expected`: the epoch that last changed it."""

    owner: int
    name: str
    plan: ViewPlan
    expected: int = 0
    manifests: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    strategy: Strategy = Strategy(Kind.CHANGES)  # noqa: RUF009  # a frozen value
    bound: int | None = None
    """The window end, or the timer tick, up to which it has emitted the changes that it held back."""
    closed: int | None = None
    """Windows that end at or before this are closed: they accept no more rows."""
    watermark: int | None = None
    """The watermark of this epoch, if the view has a window."""
    moves_watermark: bool = False
    """Whether the watermark of this epoch must be stored, because it cannot be derived from the sources later."""
    fresh: frozenset[str] | None = None
    """If set, only these accumulators are filled: those that a view adds to the state of the view it replaced."""
    inputs: InputTypes | None = None
    """The input types of its operators. May be None if the deltas contain every relation that the view reads."""
    has_refused: bool = False
    """Whether its expressions have failed on rows: readers must exclude these rows as its epochs did."""

    def guard(self) -> ErrorIsolation | None:
        return ErrorIsolation() if self.has_refused else None

    def operator(self, operator: Stateful, home: str) -> OperatorState:
        """The state of one of its operators."""
        name = operator_id(operator)
        return OperatorState(self.owner, name, home, self.manifests.get(name, {}))

    def held(self) -> HeldChanges:
        if self.strategy.is_immediate:
            return HeldChanges()
        if self.plan.window is None or self.strategy.kind is Kind.EVERY:
            return HeldChanges(everything=True)
        return HeldChanges(after=NEVER if self.bound is None else self.bound)


def view_state(owner: int, name: str, plan: ViewPlan, expected: int, manifests: Sequence[ManifestRecord]) -> ViewState:
    by_operator: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for record in manifests:
        by_operator[record.operator][record.shard] = record.manifest
    return ViewState(owner, name, plan, expected, dict(by_operator))


@dataclass(frozen=True, slots=True)
class ShardPlacement:
    """Where and when the tasks of an epoch write: the home, the number of shards, and the time in microseconds."""

    home: str
    shards: int
    time: int


def view_delta(
    view: ViewState,
    deltas: Relations,
    placement: ShardPlacement,
    directory: str,
    guard: ErrorIsolation | None = None,
    based: Based | None = None,
    has_readers: bool = True,
) -> DataFrame | None:
    """The changes of a view in an epoch; its tasks write them to `directory`. None if the view reads none of `deltas`.

    Without readers the changes are only written, and the output contains only reports.
    """
    root, window = view.plan.root, view.plan.window
    emit = Emit(
        owner=view.owner,
        home=placement.home,
        directory=directory,
        columns=tuple((name, name) for name in root.columns),
        key=view.plan.key,
        time=placement.time,
        window_end=None if window is None else WINDOW_END,
        held=view.held(),
        passes_on=has_readers,
    )
    building = Deltas(view, deltas, placement, guard, based)
    fused = _plain_columns(root)
    is_keyed = view.plan.key is not None
    if isinstance(root, Linear) and fused is not None and isinstance(root.input, GroupBy) and is_keyed:
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
    refuse_unstorable(view.name, frame.schema.fields)
    may_cancel = _shows_join(root) or (not is_keyed and bool(stateful(root)))
    return _emitting(emit, consolidated(frame, view.plan.key) if may_cancel else frame)


def _shows_join(operator: Operator) -> bool:
    """Whether rows of a join reach the view through stateless operators only."""
    if isinstance(operator, Join):
        return True
    return not isinstance(operator, GroupBy | Distinct) and any(map(_shows_join, inputs_of(operator)))


def emitted(view: ViewState, rows: DataFrame, placement: ShardPlacement, directory: str) -> DataFrame:
    """Rows with `_weight` as changes of the view; its tasks write them to `directory`.

    Rows of one key must be adjacent.
    """
    emit = Emit(
        owner=view.owner,
        home=placement.home,
        directory=directory,
        columns=tuple((name, name) for name in view.plan.root.columns),
        key=view.plan.key,
        time=placement.time,
        window_end=WINDOW_END if WINDOW_END in rows.columns else None,
    )
    return _emitting(emit, rows)


def _emitting(emit: Emit, rows: DataFrame) -> DataFrame:
    task = EmitTask(emit, tuple(fields_of(rows)))
    limit_batches(rows.sparkSession, rows.schema)
    return map_in_arrow(rows, task, spark_schema(task.schema()))


@dataclass(frozen=True, slots=True)
class Deltas:
    view: ViewState
    deltas: Relations
    placement: ShardPlacement
    guard: ErrorIsolation | None = None
    based: Based | None = None

    def delta(self, operator: Operator, wanted: frozenset[str] | None = None) -> DataFrame | None:
        match operator:
            case Read(relation=relation):
                changes = self.deltas.get(relation.casefold())
                return None if changes is None else _selected(changes, operator)
            case Linear(input=below):
                frame = self.delta(below, inputs_read(operator, wanted))
                return None if frame is None else linear(frame, operator, self.guard, wanted)
            case UnionAll(inputs=inputs):
                return self._union(operator, [part for part in map(self.delta, inputs) if part is not None])
            case GroupBy() | Distinct():
                return self.kept(operator, None)
            case Join():
                return self._join(operator, wanted)

    def _join(self, operator: Join, wanted: frozenset[str] | None) -> DataFrame | None:
        """A join: both sides in one shuffle, then its kernel on each shard."""
        sides = [self.delta(operator.left), self.delta(operator.right)]
        frame = next((side for side in sides if side is not None), None)
        if frame is None:
            return None
        spark = frame.sparkSession
        left, right = (
            self._schema(spark, below, side) for below, side in zip((operator.left, operator.right), sides, strict=True)
        )
        types = join_types(spark, operator, left, right)
        join = equi_join(self.view.name, operator, types, wanted)
        task = ShardTask(JoinKernel(join), self.view.operator(operator, self.placement.home), join.fields)
        rows = tagged_union(operator, types, sides[0], sides[1], self.placement.shards)
        limit_batches(spark, rows.schema)
        changes = map_in_arrow(rows, task, spark_schema(task.schema())).drop(OP)
        return changes if self.guard is None else self.guard.keep(changes)

    def _schema(self, spark: SparkSession, operator: Operator, changes: DataFrame | None) -> StructType:
        """The columns of an input of a join, which may have no changes in this epoch."""
        if self.view.inputs is not None:
            return self.view.inputs.schema(spark, operator)
        assert changes is not None  # without `inputs` the deltas contain every relation
        return changes.select(*map(quoted, _data(changes))).schema

    def _union(self, operator: UnionAll, parts: Sequence[DataFrame]) -> DataFrame | None:
        """The union of the inputs that have changes.

        Spark derives the common types from these inputs only, so they are first cast to the types of the whole UNION.
        """
        if not parts:
            return None
        if len(parts) < len(operator.inputs) and self.view.inputs is not None:
            types = self.view.inputs.schema(parts[0].sparkSession, operator)
            parts = [_cast(part, types) for part in parts]
        return union(parts, operator.columns)

    def kept(self, operator: GroupBy | Distinct, emit: Emit | None) -> DataFrame | None:
        """A stateful operator: pre-aggregation by the JVM, then its kernel on each shard, which may also emit."""
        summed = self._summed(operator)
        if summed is None:
            return None
        aggregate, groups = summed
        kernel = GroupByKernel(aggregate, self._closed(operator), self.view.fresh or frozenset())
        task = ShardTask(kernel, self.view.operator(operator, self.placement.home), aggregate.fields, emit)
        limit_batches(groups.sparkSession, groups.schema)
        frame = mapped(groups, task, spark_schema(task.schema()))
        return frame if self.guard is None else self.guard.keep(frame)

    def _summed(self, operator: GroupBy | Distinct) -> tuple[Aggregate, DataFrame] | None:
        """The operator's aggregate and its pre-aggregated groups, from a cached plan if there is one."""
        shards = self.placement.shards
        if self.based is not None:

            def of_changes(relation: str, changes: DataFrame) -> tuple[Aggregate, DataFrame]:
                summed = Deltas(self.view, {relation: changes}, self.placement)._summed(operator)
                assert summed is not None  # the operator reads this relation
                return summed

            cached = self.based.grouped(self.view.owner, operator, shards, of_changes)
            if cached is not None:
                return cached
        frame = self.delta(operator.input, read_by(operator, None))
        if frame is None:
            return None
        aggregate = aggregate_in(self.view.name, operator, frame)
        return aggregate, grouped(frame, aggregate, shards, self.view.fresh)

    def _closed(self, operator: GroupBy | Distinct) -> ClosedWindows | None:
        window = self.view.plan.window
        if self.view.closed is None or window is None or not isinstance(operator, GroupBy):
            return None
        return ClosedWindows(window.end, self.view.closed) if window.end in operator.keys else None


def aggregate_in(view: str, operator: GroupBy | Distinct, frame: DataFrame) -> Aggregate:
    if isinstance(operator, GroupBy):
        return aggregate_over(view, operator, frame)
    names = operator.columns
    own = [field for field in frame.schema.fields if field.name in names]
    refuse_unstorable(view, own)
    aggregate = distinct(view, [pa.field(field.name, nullable_inside(arrow_type(field.dataType))) for field in own])
    refuse_unequal_keys(aggregate)
    return aggregate


def read_by(operator: Operator, wanted: frozenset[str] | None) -> frozenset[str] | None:
    """The input columns, in lower case, that an operator needs to produce the `wanted` output columns; None: all."""
    match operator:
        case Linear(expressions=expressions, condition=condition):
            sqls = [
                expression.sql for expression in expressions if wanted is None or expression.name.casefold() in wanted
            ]
            return mentioned(sqls if condition is None else [*sqls, condition])
        case GroupBy(keys=keys, calls=calls):
            return frozenset(name.casefold() for name in (*keys, *(call.argument or "" for call in calls)))
    return None


def inputs_read(operator: Linear, wanted: frozenset[str] | None) -> frozenset[str] | None:
    """Like `read_by`. A join outputs these columns only, so they include those of expressions that nobody reads."""
    return read_by(operator, None if isinstance(operator.input, Join) else wanted)


def linear(
    frame: DataFrame, operator: Linear, guard: ErrorIsolation | None = None, wanted: frozenset[str] | None = None
) -> DataFrame:
    is_plain = operator.condition is None and all(
        _is_column(expression.sql, frame) for expression in operator.expressions
    )
    if guard is not None and not is_plain:
        return guard.linear(frame, operator, wanted)
    if REPORT in frame.columns and times_in(expression.sql for expression in operator.expressions):
        frame, operator = timed(frame, operator)
    has_reports, has_weight = REPORT in frame.columns, WEIGHT in frame.columns
    # Reports pass through: expressions over data rows must not be evaluated on them.
    values = [
        f"CASE WHEN {REPORT} IS NULL THEN ({sql}) END" if has_reports and not _is_column(sql, frame) else sql
        for sql in (expression.sql for expression in operator.expressions)
    ]
    if operator.condition is not None:
        test = f"({operator.condition})"
        frame = frame.where(f"CASE WHEN {REPORT} IS NULL THEN {test} ELSE TRUE END" if has_reports else test)
    named = [
        f"{sql} AS {quoted(expression.name)}" for sql, expression in zip(values, operator.expressions, strict=True)
    ]
    own = [name for name, is_present in ((WEIGHT, has_weight), (REPORT, has_reports)) if is_present]
    return frame.selectExpr(*named, *own)


def _is_column(sql: str, frame: DataFrame) -> bool:
    return unquoted(sql) in frame.columns


def _plain_columns(root: Operator) -> tuple[tuple[str, str], ...] | None:
    """(name, input column) pairs of a projection that only selects columns; None when it does more."""
    if not isinstance(root, Linear) or root.condition is not None:
        return None
    known = root.input.columns
    pairs = [
        (expression.name, column) for expression in root.expressions if (column := unquoted(expression.sql)) in known
    ]
    return tuple(pairs) if len(pairs) == len(root.expressions) else None


def _selected(frame: DataFrame, read: Read) -> DataFrame:
    own = [name for name in (WEIGHT, REPORT) if name in frame.columns]
    return frame.selectExpr(*read.selected, *own)


def union(parts: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
    own = [name for name in (WEIGHT, REPORT) if any(name in part.columns for part in parts)]
    aligned = [
        part.select(
            *(F.col(quoted(old)).alias(new) for old, new in zip(_data(part), columns, strict=True)),
            *(F.col(name) if name in part.columns else F.lit(None).cast("string").alias(name) for name in own),
        )
        for part in parts
    ]
    return reduce(DataFrame.unionAll, aligned)


def _cast(part: DataFrame, types: StructType) -> DataFrame:
    """The columns of one input of a UNION, matched by position and cast to the types of the UNION."""
    own = [name for name in (OP, WEIGHT, REPORT) if name in part.columns]
    pairs = zip(_data(part), types.fields, strict=True)
    return part.select(*(F.col(quoted(name)).cast(field.dataType).alias(name) for name, field in pairs), *own)


def _data(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in (OP, WEIGHT, REPORT)]


def fields_of(frame: DataFrame) -> list[pa.Field]:
    return [pa.field(column.name, nullable_inside(arrow_type(column.dataType))) for column in frame.schema.fields]
