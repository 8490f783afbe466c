"""The steps of a projection as Spark column expressions: the values, and the first value that does not fit.

Same behaviour as the Arrow executor in `schema/projection.py`. A value that does not fit becomes NULL here and is named
by `violations`; no expression raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.column import columns_of, dotted
from laminae.schema.projection import Cast, Fill, Keep, Nest
from laminae.spark.exact_cast import exact_cast
from laminae.spark.literals import default_sql
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column

    from laminae.schema import column as schema_column
    from laminae.schema.projection import ColumnProjection, Step

    ColumnOf = Callable[[int], Column]

REASONS = {
    "null": "{path} is NULL in a NOT NULL column",
    "no value": "{path} is NOT NULL, has no default, and the older version does not have it",
    "lossy": "{path} cannot become {type} without losing its value",
}


def project_columns(projection: ColumnProjection, column_of: ColumnOf) -> list[Column]:
    """The columns of the new schema by name; `column_of(i)` is column i of the old one."""
    old = columns_of(projection.old_schema)
    return [_value(step, old, column_of).alias(step.target.name) for step in projection.steps]


def violations(projection: ColumnProjection, column_of: ColumnOf) -> Column:
    """Why the row does not fit the new schema: the first path in the schema's order. NULL: it fits."""
    return first_of(_problems(projection.steps, columns_of(projection.old_schema), column_of))


def keeps_every_column(projection: ColumnProjection) -> bool:
    """Whether the rows stay as they are, checks aside."""
    in_place = all(isinstance(step, Keep) and step.source == i for i, step in enumerate(projection.steps))
    return in_place and projection.old_schema.names == projection.new_schema.names


def first_of(problems: Iterable[Column]) -> Column:
    """The first text that is not NULL."""
    found = list(problems)
    return F.coalesce(*found) if found else F.lit(None).cast("string")


def first_in(items: Column, problem: Callable[[Column], Column]) -> Column:
    """The first problem of an array's elements."""
    return F.get(F.filter(F.transform(items, problem), lambda found: found.isNotNull()), 0)


def fields_of(parent: Column, columns: Sequence[schema_column.Column]) -> ColumnOf:
    """The fields of a struct column by position."""
    return lambda i: parent.getField(columns[i].name)


def _value(step: Step, old: Sequence[schema_column.Column], column_of: ColumnOf) -> Column:
    match step:
        case Fill():
            return F.expr(default_sql(step.target, step.path))
        case Keep():
            return column_of(step.source)
        case Cast():
            return exact_cast(column_of(step.source), old[step.source].type, step.target.type)
        case Nest():
            return _nested(step, old[step.source], column_of(step.source))


def _nested(step: Nest, old: schema_column.Column, source: Column) -> Column:
    if step.target.kind == "struct":
        inner = fields_of(source, old.children)
        values = [_value(child, old.children, inner).alias(child.target.name) for child in step.children]
        return F.when(source.isNotNull(), F.struct(*values))
    if step.target.kind == "map":
        return _map(step, old, source)
    (child,) = step.children
    return F.transform(source, lambda item: _value(child, old.children, lambda _: item))


def _map(step: Nest, old: schema_column.Column, source: Column) -> Column:
    key, item = step.children

    def key_of(k: Column) -> Column:
        return _value(key, old.children, lambda _: k)

    values = F.transform_values(source, lambda _, v: _value(item, old.children, lambda _: v))
    if isinstance(key, Keep):
        return values
    # Spark raises on a NULL key: a map with one that does not fit becomes NULL as a whole.
    fits = ~F.exists(F.map_keys(source), lambda k: key_of(k).isNull())
    return F.when(fits, F.transform_keys(values, lambda k, _: key_of(k)))


def _problems(steps: Sequence[Step], old: Sequence[schema_column.Column], column_of: ColumnOf) -> list[Column]:
    return [found for step in steps if (found := _problem(step, old, column_of)) is not None]


def _problem(step: Step, old: Sequence[schema_column.Column], column_of: ColumnOf) -> Column | None:
    node = step.target
    if isinstance(step, Fill):
        return _fill_problem(step)
    source = column_of(step.source)
    found: list[Column] = []
    if isinstance(step, Cast):
        found.append(F.when(source.isNotNull() & _value(step, old, column_of).isNull(), _reason("lossy", step)))
    elif isinstance(step, Nest):
        found.extend(_inner_problems(step, old[step.source], source))
    if not node.nullable:
        found.append(F.when(source.isNull(), _reason("null", step)))
    return first_of(found) if found else None


def _inner_problems(step: Nest, old: schema_column.Column, source: Column) -> list[Column]:
    if step.target.kind == "struct":
        inner = _problems(step.children, old.children, fields_of(source, old.children))
        return [F.when(source.isNotNull(), first_of(inner))] if inner else []
    arrays = [F.map_keys(source), F.map_values(source)] if step.target.kind == "map" else [source]
    found = []
    for child, items in zip(step.children, arrays, strict=True):
        if _problem(child, old.children, lambda _: F.lit(None)) is not None:
            found.append(first_in(items, _element_problem(child, old.children)))
    return found


def _element_problem(child: Step, old: Sequence[schema_column.Column]) -> Callable[[Column], Column]:
    return lambda item: first_of(_problems([child], old, lambda _: item))


def _fill_problem(step: Fill) -> Column | None:
    if step.target.nullable:
        return None
    if step.target.default is None:
        return F.lit(_text("no value", step))
    return F.when(F.expr(default_sql(step.target, step.path)).isNull(), _reason("null", step))


def _reason(name: str, step: Step) -> Column:
    return F.lit(_text(name, step))


def _text(name: str, step: Step) -> str:
    return REASONS[name].format(path=dotted(step.path), type=spark_type(step.target.type).simpleString().upper())
