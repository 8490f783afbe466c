"""Projections and filters that survive rows on which an expression fails: the row is set aside, the others go on.

Spark's TryEval gives NULL for a struct one of whose expressions raises. Only a run that has failed is guarded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import TimestampNTZType, TimestampType

from laminae.schema.types import quote_string
from laminae.spark.java import EXPRESSIONS, java_class
from laminae.spark.views.notes import NOTE
from laminae.trace.spec import WEIGHT
from laminae.views.operators import Named
from laminae.views.planner import quoted
from laminae.views.windows import times_in, with_times
from laminae.views.wording import relation_below, worded, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from laminae.views.operators import Linear

TRIED, NUMBER, FAILED, TIME = "_tried", "_number", "_failed", "_time"
TIMES = (TimestampType, TimestampNTZType)
REASON = "{expression} of view {view} cannot be computed: {condition}"
# Raised by a function of the user's and by everything else that says what it is.
UNKNOWN_CONDITION = "it fails"


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that came to a projection of a view and failed there."""

    rows: DataFrame
    operator: Linear
    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """What a guarded run leaves behind: the rows it set aside, and frames that are kept until these are written."""

    refused: list[Refused] = field(default_factory=list)
    kept: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame) -> DataFrame:
        """The tasks behind it write state: they shall not run again for the rows that were set aside."""
        self.kept.append(frame.persist())
        return self.kept[-1]

    def release(self) -> None:
        for frame in self.kept:
            frame.unpersist()

    def linear(self, frame: DataFrame, operator: Linear, wanted: frozenset[str] | None) -> DataFrame:
        """The projection of the rows on which nothing fails. `wanted`: what is read of it, in lower case; None: all.

        What nobody reads Spark does not compute, so it must not refuse a row here either.
        """
        rows, operator = self._timed(frame, operator)
        made = [each for each in operator.expressions if wanted is None or each.name.casefold() in wanted]
        # To ask a window again would multiply the rows.
        computed = [each.sql for each in made if each.sql not in _columns(rows) and not times_in([each.sql])]
        sqls = ([] if operator.condition is None else [operator.condition]) + computed
        kept = self._kept(rows, operator, made, sqls)
        places = {each.name: f"{TRIED}.row.c{place}" for place, each in enumerate(made)}
        columns = [f"{places.get(each.name, each.sql)} AS {quoted(each.name)}" for each in operator.expressions]
        own = [name for name in (WEIGHT, NOTE) if name in frame.columns]
        return kept.selectExpr(*columns, *own)

    def _timed(self, frame: DataFrame, operator: Linear) -> tuple[DataFrame, Linear]:
        """The rows with the times of windows that have to be computed, and the operator over these.

        Spark takes a window out of the expression around it, and its time with it: this must not fail there any more.
        """
        has_notes = NOTE in frame.columns
        found = times_in(each.sql for each in operator.expressions)
        times = [each for each in found if has_notes or not _is_time(frame, each)]
        if not times:
            return frame, operator
        made = [Named(f"{TIME}{place}", as_time(frame, sql)) for place, sql in enumerate(times)]
        sqls = ([] if operator.condition is None else [operator.condition]) + [each.sql for each in made]
        kept = self._kept(frame, operator, made, sqls)
        columns = [
            f"{with_note_timed(kept, f'{TRIED}.row.c{place}')} AS {each.name}" for place, each in enumerate(made)
        ]
        names = {sql: each.name for sql, each in zip(times, made, strict=True)}
        over = tuple(replace(each, sql=with_times(each.sql, names)) for each in operator.expressions)
        return kept.selectExpr(*map(quoted, frame.columns), *columns), replace(operator, expressions=over)

    def _kept(self, frame: DataFrame, operator: Linear, made: Sequence[Named], sqls: Sequence[str]) -> DataFrame:
        """The rows with what was computed of them, less those on which it failed, which are set aside."""
        has_notes = NOTE in frame.columns
        marked = frame.withColumn(NUMBER, F.monotonically_increasing_id())
        # Not deterministic, so that Spark neither computes it once for each use nor moves a filter below it.
        is_row = (F.monotonically_increasing_id() >= 0) & (F.col(NOTE).isNull() if has_notes else F.lit(True))
        marked = marked.withColumn(TRIED, F.when(is_row, tried(frame, _row(made, operator.condition))))
        is_note = f"{NOTE} IS NOT NULL" if has_notes else "FALSE"
        self.refused.append(Refused(marked.where(f"{TRIED} IS NULL AND NOT {is_note}"), operator, tuple(sqls)))
        return marked.where(f"{TRIED}.row IS NOT NULL OR {is_note}")


def tried(frame: DataFrame, sql: str) -> Column:
    """The expression, NULL where it raises: SQL has this for a few functions, Catalyst for all."""
    jvm: Any = frame.sparkSession.sparkContext._jvm
    utils = java_class(jvm, EXPRESSIONS)
    node = java_class(jvm, "org.apache.spark.sql.catalyst.expressions.TryEval")(utils.expression(F.expr(sql)._jc))
    return ClassicColumn(utils.column(node))


def letters(view: str, refused: Refused) -> DataFrame | None:
    """`relation`, the row as JSON in `value`, `weight` and `reason`. None when nothing was refused."""
    operator = refused.operator
    words = words_of(operator.input)
    failed = [
        F.when(tried(refused.rows, f"named_struct('v', {sql})").isNull(), F.lit(sql)) for sql in refused.expressions
    ]
    fields = ", ".join(f"{quoted(name)} AS {quoted(words[name])}" for name in operator.input.columns)
    # A row that belongs to several windows has failed in each of them.
    rows = refused.rows.dropDuplicates([NUMBER]).withColumn(FAILED, F.coalesce(*failed, F.lit("")))
    found = [row[FAILED] for row in rows.select(FAILED).distinct().collect()]
    if not found:
        return None
    reasons = {sql: _reason(view, worded(sql, words), _condition(rows, sql)) for sql in found}
    reason = F.coalesce(*(F.when(F.col(FAILED) == sql, F.lit(text)) for sql, text in reasons.items()))
    options = "map('ignoreNullFields', 'false')"
    return rows.select(
        F.lit(relation_below(operator.input) or view).alias("relation"),
        F.expr(f"CAST(to_json(struct({fields}), {options}) AS BINARY)").alias("value"),
        F.col(WEIGHT).alias("weight"),
        reason.alias("reason"),
    )


def _row(made: Sequence[Named], condition: str | None) -> str:
    """NULL in `row`: the condition does not hold. A condition is asked before anything is computed."""
    fields = ", ".join(f"{quote_string(f'c{place}')}, {each.sql}" for place, each in enumerate(made))
    row = f"named_struct({fields})" if made else "named_struct('none', TRUE)"
    return f"named_struct('row', {row if condition is None else f'CASE WHEN ({condition}) THEN {row} END'})"


def timed(frame: DataFrame, operator: Linear) -> tuple[DataFrame, Linear]:
    """Rows among notes with the times of windows as columns, and the operator over these.

    Spark drops what has no time before it comes to a window, and a note has none.
    """
    times = times_in(each.sql for each in operator.expressions)
    names = {sql: f"{TIME}{place}" for place, sql in enumerate(times)}
    columns = [f"{with_note_timed(frame, as_time(frame, sql))} AS {name}" for sql, name in names.items()]
    over = tuple(replace(each, sql=with_times(each.sql, names)) for each in operator.expressions)
    return frame.selectExpr("*", *columns), replace(operator, expressions=over)


def with_note_timed(frame: DataFrame, sql: str) -> str:
    """A time that notes have as well, if there are any: any will do."""
    if NOTE not in frame.columns:
        return sql
    kind = frame.selectExpr(sql).schema.fields[0].dataType.simpleString()
    return f"CASE WHEN {NOTE} IS NULL THEN {sql} ELSE CAST('1970-01-01 00:00:00' AS {kind}) END"


def _is_time(frame: DataFrame, sql: str) -> bool:
    """Whether it is a column that a window takes as it is; nothing can fail then."""
    return sql in _columns(frame) and as_time(frame, sql) == sql


def as_time(frame: DataFrame, sql: str) -> str:
    """The cast that Spark would put around what is no time yet."""
    kind = frame.selectExpr(sql).schema.fields[0].dataType
    return sql if isinstance(kind, TIMES) else f"CAST({sql} AS TIMESTAMP)"


def _columns(frame: DataFrame) -> set[str]:
    return {name for column in frame.columns for name in (column, quoted(column))}


def _condition(rows: DataFrame, sql: str) -> str:
    """What Spark calls the error of the first row that fails so."""
    if not sql:
        return UNKNOWN_CONDITION
    try:
        rows.where(F.col(FAILED) == sql).limit(1).selectExpr(sql).collect()
    except PySparkException as problem:
        return str(problem.getCondition() or UNKNOWN_CONDITION)
    return UNKNOWN_CONDITION


def _reason(view: str, expression: str, condition: str) -> str:
    return REASON.format(expression=expression or "an expression", view=view, condition=condition)
