"""The steps of a schema projection as Spark expressions: the values, and the error of the first that does not fit.

Same behaviour as the Arrow executor in `schema/projection.py`. A value that does not fit becomes NULL here and is
reported by `violations`; no expression raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from laminae.schema.column import columns_of, dotted
from laminae.schema.projection import Cast, Fill, Keep, Nest
from laminae.spark.catalyst.expression import (
    NULL_TEXT,
    ZERO,
    Expression,
    any_of,
    call,
    each,
    each_two,
    first_text,
    literal,
    struct,
    when,
)
from laminae.spark.catalyst.literals import value_sql
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats.exact_cast import exact_cast

if TYPE_CHECKING:
    from laminae.schema.column import Column, Columns
    from laminae.schema.projection import ColumnProjection, Step

ColumnOf = Callable[[int], Expression]

REASONS = {
    "null": "{path} is NULL in a NOT NULL column",
    "no value": "{path} is NOT NULL, has no default, and the older version does not have it",
    "lossy": "{path} cannot become {type} without losing its value",
}


def project_columns(projection: ColumnProjection, column_of: ColumnOf) -> list[tuple[str, Expression]]:
    """The columns of the new schema by name; `column_of(i)` is column i of the old one."""
    old = columns_of(projection.old_schema)
    return [(step.target.name, step_value(step, old, column_of)) for step in projection.steps]


def violations(projection: ColumnProjection, column_of: ColumnOf) -> Expression:
    """Why the row does not fit the new schema: the first path in schema order that does not. NULL if it fits."""
    return first_text(_problems(projection.steps, columns_of(projection.old_schema), column_of))


def misfits(projection: ColumnProjection, column_of: ColumnOf) -> Expression:
    """Whether the row does not fit, without the reason: the plan is smaller and compiles faster."""
    old = columns_of(projection.old_schema)
    return any_of([test for step in projection.steps if (test := _misfit(step, old, column_of)) is not None])


def keeps_every_column(projection: ColumnProjection) -> bool:
    """Whether the projection leaves rows unchanged, apart from checks."""
    return keeps_every_place(projection) and projection.old_schema.names == projection.new_schema.names


def keeps_every_place(projection: ColumnProjection) -> bool:
    """The same, apart from names: columns keep their positions and values."""
    return all(isinstance(step, Keep) and step.source == i for i, step in enumerate(projection.steps))


def first_in(items: Expression, problem: Callable[[Expression], Expression]) -> Expression:
    """The first error among the elements of an array."""
    problems = each("filter", each("transform", items, problem), lambda text: text.is_there())
    return call("get", problems, ZERO)


def step_value(step: Step, old: Columns, column_of: ColumnOf) -> Expression:
    """The value of the column that a step produces."""
    match step:
        case Fill():
            return Expression(value_sql(step.target, step.path, step.default))
        case Keep():
            return column_of(step.source)
        case Cast():
            return exact_cast(column_of(step.source), old[step.source].type, step.target.type)
        case Nest():
            return _nested(step, old[step.source], column_of(step.source))


def _nested(step: Nest, old: Column, source: Expression) -> Expression:
    if step.target.kind == "struct":
        fields = _fields_of(source, old)
        inner = [(child.target.name, step_value(child, old.children, fields)) for child in step.children]
        return when(source.is_there(), struct(inner))
    if step.target.kind == "map":
        return _map(step, old, source)
    (child,) = step.children
    return each("transform", source, lambda item: step_value(child, old.children, lambda _: item))


def _map(step: Nest, old: Column, source: Expression) -> Expression:
    key, item = step.children

    def key_of(k: Expression) -> Expression:
        return step_value(key, old.children, lambda _: k)

    values = each_two("transform_values", [source], lambda _, v: step_value(item, old.children, lambda _: v))
    if isinstance(key, Keep):
        return values
    # Spark raises on a NULL key, so a map with a key that does not fit becomes NULL as a whole.
    is_lossy = each("exists", call("map_keys", source), lambda k: key_of(k).is_null())
    return when(~is_lossy, each_two("transform_keys", [values], lambda k, _: key_of(k)))


def _fields_of(parent: Expression, old: Column) -> ColumnOf:
    return lambda i: parent.field(old.children[i].name)


def _problems(steps: tuple[Step, ...], old: Columns, column_of: ColumnOf) -> list[Expression]:
    return [problem for step in steps if (problem := step_problem(step, old, column_of)) is not None]


def step_problem(step: Step, old: Columns, column_of: ColumnOf) -> Expression | None:
    """Why a column does not fit; None if it always does."""
    if isinstance(step, Fill):
        return _fill_problem(step)
    source = column_of(step.source)
    problems: list[Expression] = []
    if isinstance(step, Cast):
        is_lost = source.is_there() & step_value(step, old, column_of).is_null()
        problems.append(when(is_lost, _reason("lossy", step)))
    elif isinstance(step, Nest):
        problems.extend(_inner_problems(step, old[step.source], source))
    if not step.target.nullable:
        problems.append(when(source.is_null(), _reason("null", step)))
    return first_text(problems) if problems else None


def _misfit(step: Step, old: Columns, column_of: ColumnOf) -> Expression | None:
    if isinstance(step, Keep):
        return None if step.target.nullable else column_of(step.source).is_null()
    problem = step_problem(step, old, column_of)
    return None if problem is None else problem.is_there()


def _inner_problems(step: Nest, old: Column, source: Expression) -> list[Expression]:
    if step.target.kind == "struct":
        inner = _problems(step.children, old.children, _fields_of(source, old))
        return [when(source.is_there(), first_text(inner))] if inner else []
    arrays = [call("map_keys", source), call("map_values", source)] if step.target.kind == "map" else [source]
    return [
        first_in(items, _element_problem(child, old.children))
        for child, items in zip(step.children, arrays, strict=True)
        if step_problem(child, old.children, lambda _: NULL_TEXT) is not None
    ]


def _element_problem(child: Step, old: Columns) -> Callable[[Expression], Expression]:
    return lambda item: first_text(_problems((child,), old, lambda _: item))


def _fill_problem(step: Fill) -> Expression | None:
    if step.target.nullable:
        return None
    if step.default is None:
        return _reason("no value", step)
    return when(Expression(value_sql(step.target, step.path, step.default)).is_null(), _reason("null", step))


def _reason(name: str, step: Step) -> Expression:
    kind = spark_type(step.target.type).simpleString().upper()
    return literal(REASONS[name].format(path=dotted(step.path), type=kind))
