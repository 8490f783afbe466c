"""Projections and filters that set aside rows on which an expression fails, and process the other rows as usual.

Catalyst's TryEval returns NULL for a struct if one of its expressions raises. Only a job that failed is run guarded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import TimestampNTZType, TimestampType

from laminae.schema.types import quote_string
from laminae.spark.catalyst.column_functions import try_eval
from laminae.spark.tasks.task_reports import REPORT
from laminae.trace.spec import WEIGHT
from laminae.views.expression_text import relation_below, worded, words_of
from laminae.views.operators import Named
from laminae.views.planner import quoted
from laminae.views.windows import times_in, with_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from laminae.views.operators import Linear

TRIED, NUMBER, FAILED, TIME = (f"__laminae_{name}" for name in ("tried", "number", "failed", "time"))
TIMES = (TimestampType, TimestampNTZType)
REASON = "{expression} of view {view} cannot be computed: {condition}"
# For errors without a Spark error condition, such as those of user functions.
UNKNOWN_CONDITION = "it fails"


@dataclass(frozen=True, slots=True)
class Refused:
    """The input rows of a view's projection on which one of its expressions failed."""

    rows: DataFrame
    operator: Linear
    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErrorIsolation:
    """Collects the rows that a guarded run sets aside, and the frames that stay persisted until these are written."""

    refused: list[Refused] = field(default_factory=list)
    kept: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame) -> DataFrame:
        """Persist a frame whose tasks write state, so that they are not run again for the rows that were set aside."""
        self.kept.append(frame.persist())
        return self.kept[-1]

    def release(self) -> None:
        for frame in self.kept:
            frame.unpersist()

    def linear(self, frame: DataFrame, operator: Linear, wanted: frozenset[str] | None) -> DataFrame:
        """The projection of the rows on which no expression fails.

        `wanted` are the output columns that are read, in lower case; None: all. Spark prunes columns that are not read,
        so an error in one of them must not reject a row here either.
        """
        rows, operator = self._timed(frame, operator)
        outputs = [output for output in operator.expressions if wanted is None or output.name.casefold() in wanted]
        # Evaluating a window expression a second time would multiply the rows.
        computed = [output.sql for output in outputs if output.sql not in _columns(rows) and not times_in([output.sql])]
        sqls = ([] if operator.condition is None else [operator.condition]) + computed
        passed = self._kept(rows, operator, outputs, sqls)
        places = {output.name: f"{TRIED}.row.c{place}" for place, output in enumerate(outputs)}
        columns = [
            f"{places.get(expression.name, expression.sql)} AS {quoted(expression.name)}"
            for expression in operator.expressions
        ]
        own = [name for name in (WEIGHT, REPORT) if name in frame.columns]
        return passed.selectExpr(*columns, *own)

    def _timed(self, frame: DataFrame, operator: Linear) -> tuple[DataFrame, Linear]:
        """The rows with computed time arguments of windows as columns, and the operator rewritten to use these.

        Spark's analyser extracts a window with its time argument from the surrounding expression, and so from TryEval.
        The argument is therefore evaluated beforehand, where a failure can be caught.
        """
        has_reports = REPORT in frame.columns
        arguments = times_in(expression.sql for expression in operator.expressions)
        times = [argument for argument in arguments if has_reports or not _is_time(frame, argument)]
        if not times:
            return frame, operator
        time_columns = [Named(f"{TIME}{place}", as_time(frame, sql)) for place, sql in enumerate(times)]
        sqls = ([] if operator.condition is None else [operator.condition]) + [column.sql for column in time_columns]
        passed = self._kept(frame, operator, time_columns, sqls)
        columns = [
            f"{with_report_timed(passed, f'{TRIED}.row.c{place}')} AS {column.name}"
            for place, column in enumerate(time_columns)
        ]
        names = {sql: column.name for sql, column in zip(times, time_columns, strict=True)}
        over = tuple(replace(expression, sql=with_times(expression.sql, names)) for expression in operator.expressions)
        return passed.selectExpr(*map(quoted, frame.columns), *columns), replace(operator, expressions=over)

    def _kept(self, frame: DataFrame, operator: Linear, made: Sequence[Named], sqls: Sequence[str]) -> DataFrame:
        """The rows with the computed values in `TRIED`; rows on which an expression failed are set aside."""
        has_reports = REPORT in frame.columns
        marked = frame.withColumn(NUMBER, F.monotonically_increasing_id())
        # Nondeterministic, so that Spark neither evaluates it once per use nor pushes a filter below it.
        is_row = (F.monotonically_increasing_id() >= 0) & (F.col(REPORT).isNull() if has_reports else F.lit(True))
        marked = marked.withColumn(TRIED, F.when(is_row, try_eval(frame.sparkSession, _row(made, operator.condition))))
        is_report = f"{REPORT} IS NOT NULL" if has_reports else "FALSE"
        self.refused.append(Refused(marked.where(f"{TRIED} IS NULL AND NOT {is_report}"), operator, tuple(sqls)))
        return marked.where(f"{TRIED}.row IS NOT NULL OR {is_report}")


def letters(view: str, refused: Refused) -> DataFrame | None:
    """Dead letters: `relation`, the row as JSON in `value`, `weight` and `reason`. None when no row was refused."""
    operator = refused.operator
    words = words_of(operator.input)
    failed = [
        F.when(try_eval(refused.rows.sparkSession, f"named_struct('v', {sql})").isNull(), F.lit(sql))
        for sql in refused.expressions
    ]
    fields = ", ".join(f"{quoted(name)} AS {quoted(words[name])}" for name in operator.input.columns)
    # A row that belongs to several windows fails once in each of them.
    rows = refused.rows.dropDuplicates([NUMBER]).withColumn(FAILED, F.coalesce(*failed, F.lit("")))
    failing = [row[FAILED] for row in rows.select(FAILED).distinct().collect()]
    if not failing:
        return None
    reasons = {sql: _reason(view, worded(sql, words), _condition(rows, sql)) for sql in failing}
    reason = F.coalesce(*(F.when(F.col(FAILED) == sql, F.lit(text)) for sql, text in reasons.items()))
    options = "map('ignoreNullFields', 'false')"
    return rows.select(
        F.lit(relation_below(operator.input) or view).alias("relation"),
        F.expr(f"CAST(to_json(struct({fields}), {options}) AS BINARY)").alias("value"),
        F.col(WEIGHT).alias("weight"),
        reason.alias("reason"),
    )


def _row(made: Sequence[Named], condition: str | None) -> str:
    """A struct; its `row` is NULL if the condition does not hold. The condition is evaluated before the expressions."""
    fields = ", ".join(f"{quote_string(f'c{place}')}, {expression.sql}" for place, expression in enumerate(made))
    row = f"named_struct({fields})" if made else "named_struct('none', TRUE)"
    return f"named_struct('row', {row if condition is None else f'CASE WHEN ({condition}) THEN {row} END'})"


def timed(frame: DataFrame, operator: Linear) -> tuple[DataFrame, Linear]:
    """Rows and reports with the time arguments of windows as columns, and the operator rewritten to use these.

    Spark drops rows whose window time is NULL, and would drop reports, which have no time.
    """
    times = times_in(expression.sql for expression in operator.expressions)
    names = {sql: f"{TIME}{place}" for place, sql in enumerate(times)}
    columns = [f"{with_report_timed(frame, as_time(frame, sql))} AS {name}" for sql, name in names.items()]
    over = tuple(replace(expression, sql=with_times(expression.sql, names)) for expression in operator.expressions)
    return frame.selectExpr("*", *columns), replace(operator, expressions=over)


def with_report_timed(frame: DataFrame, sql: str) -> str:
    """The time expression, with an arbitrary time for reports, if the frame has a report column."""
    if REPORT not in frame.columns:
        return sql
    kind = frame.selectExpr(sql).schema.fields[0].dataType.simpleString()
    return f"CASE WHEN {REPORT} IS NULL THEN {sql} ELSE CAST('1970-01-01 00:00:00' AS {kind}) END"


def _is_time(frame: DataFrame, sql: str) -> bool:
    """Whether it is a column that a window accepts without a cast; its evaluation cannot fail."""
    return sql in _columns(frame) and as_time(frame, sql) == sql


def as_time(frame: DataFrame, sql: str) -> str:
    """The expression, with the cast to TIMESTAMP that Spark adds implicitly if it has another type."""
    kind = frame.selectExpr(sql).schema.fields[0].dataType
    return sql if isinstance(kind, TIMES) else f"CAST({sql} AS TIMESTAMP)"


def _columns(frame: DataFrame) -> set[str]:
    return {name for column in frame.columns for name in (column, quoted(column))}


def _condition(rows: DataFrame, sql: str) -> str:
    """Spark's error condition for the first row on which this expression fails."""
    if not sql:
        return UNKNOWN_CONDITION
    try:
        rows.where(F.col(FAILED) == sql).limit(1).selectExpr(sql).collect()
    except PySparkException as problem:
        return str(problem.getCondition() or UNKNOWN_CONDITION)
    return UNKNOWN_CONDITION


def _reason(view: str, expression: str, condition: str) -> str:
    return REASON.format(expression=expression or "an expression", view=view, condition=condition)
