"""The aggregates of a query, from the plan that Spark made for one of its batches."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from laminae.state.checkpoint.aggregates import Aggregate, QueryNote
from laminae.state.codec.encode import row_encoder
from laminae.state.codec.layout import leaf_layout
from laminae.state.leaves import Form
from laminae.state.types import Field, Struct, parse_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.state.types import Type

SAVING = ("StateStoreSaveExec", "SessionWindowStateStoreSaveExec")


def query_note(plan: Any) -> QueryNote:
    """The aggregates of every operator that saves some, by operator id."""
    saving = [node for node in _nodes(plan) if node.getClass().getSimpleName() in SAVING]
    found = ((int(node.stateInfo().get().operatorId()), tuple(_aggregates(node))) for node in saving)
    return QueryNote(tuple(sorted(found, key=lambda pair: pair[0])))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _items(plan.children()):
        yield from _nodes(child)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _aggregates(saving: Any) -> list[Aggregate]:
    """Those of the first aggregation below: all of a streaming aggregation have the same, in the same order."""
    for node in _nodes(saving):
        if "aggregateExpressions" in {method.getName() for method in node.getClass().getMethods()}:
            return [_aggregate(one.aggregateFunction()) for one in _items(node.aggregateExpressions())]
    return []


def _aggregate(function: Any) -> Aggregate:
    buffers = tuple(
        Field(str(one.name()), _type(one.dataType()), bool(one.nullable()))
        for one in _items(function.aggBufferAttributes())
    )
    inputs = tuple(_type(child.dataType()) for child in _items(function.children()))
    name = str(function.getClass().getSimpleName())
    return Aggregate(str(function.sql()), name, buffers, inputs, _initial(function, buffers))


def _initial(function: Any, buffers: tuple[Field, ...]) -> tuple[bytes, ...] | None:
    """A row of one field for what each buffer starts with; None for functions that keep an object of their own."""
    if "initialValues" not in {method.getName() for method in function.getClass().getMethods()}:
        return None
    values = [expression.eval(None) for expression in _items(function.initialValues())]
    kept = zip(buffers, values, strict=True)
    return tuple(row_encoder(Struct((Field("v", one.type),)))((_value(one.type, value),)) for one, value in kept)


def _value(kind: Type, value: Any) -> object:
    """A value of Catalyst's as the codec takes it; decimals come as objects of Java."""
    layout = leaf_layout(kind)
    if value is not None and layout is not None and layout.form in (Form.SMALL_DECIMAL, Form.LARGE_DECIMAL):
        return Decimal(str(value.toString()) if hasattr(value, "toString") else str(value))
    return value


def _type(java: Any) -> Type:
    return parse_type(json.loads(java.json()))
