"""What Spark's streaming queries do not show in Python: where they run, how they write, which aggregates they keep."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from laminae.spark.catalyst.jvm import scala_items
from laminae.state.checkpoint.aggregates import Aggregate, QueryNote
from laminae.state.codec.encode import row_encoder
from laminae.state.codec.layout import leaf_layout
from laminae.state.leaves import Form
from laminae.state.types import Field, Struct, parse_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from laminae.state.types import Type

SAVING = ("StateStoreSaveExec", "SessionWindowStateStoreSaveExec")


@dataclass(frozen=True, slots=True)
class ActiveQuery:
    """A running query: its name, or its id if it has none, and its checkpoint as Spark resolved it."""

    name: str
    checkpoint: str


def active_queries(spark: SparkSession) -> Iterator[ActiveQuery]:
    """The queries of every session of this application: a notebook has more than one session."""
    shared: Any = spark._jsparkSession.sharedState()
    for query in shared.activeStreamingQueries().values():
        yield ActiveQuery(str(query.name() or query.id().toString()), str(query.resolvedCheckpointRoot()))


def output_mode(writer: DataStreamWriter) -> str:
    """The output mode that was set. Spark has no public API to read it from a writer."""
    java: Any = writer._jwrite
    field = java.getClass().getDeclaredField("outputMode")
    field.setAccessible(True)
    return str(field.get(java).toString()).lower()


def query_note(query: StreamingQuery) -> QueryNote:
    """The aggregates of every operator that saves aggregation state, by operator id, in the plan of the last batch."""
    plan: Any = query._jsq.streamingQuery().lastExecution().executedPlan()
    saving = [node for node in _nodes(plan) if node.getClass().getSimpleName() in SAVING]
    operators = ((int(node.stateInfo().get().operatorId()), tuple(_aggregates(node))) for node in saving)
    return QueryNote(tuple(sorted(operators, key=lambda operator: operator[0])))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in scala_items(plan.children()):
        yield from _nodes(child)


def _aggregates(saving: Any) -> list[Aggregate]:
    """The aggregates of the first aggregation node: all nodes of a streaming aggregation have the same, in order."""
    for node in _nodes(saving):
        if "aggregateExpressions" in {method.getName() for method in node.getClass().getMethods()}:
            return [_aggregate(one.aggregateFunction()) for one in scala_items(node.aggregateExpressions())]
    return []


def _aggregate(function: Any) -> Aggregate:
    buffers = tuple(
        Field(str(one.name()), _type(one.dataType()), bool(one.nullable()))
        for one in scala_items(function.aggBufferAttributes())
    )
    inputs = tuple(_type(child.dataType()) for child in scala_items(function.children()))
    name = str(function.getClass().getSimpleName())
    return Aggregate(str(function.sql()), name, buffers, inputs, _initial(function, buffers))


def _initial(function: Any, buffers: tuple[Field, ...]) -> tuple[bytes, ...] | None:
    """The initial value of each buffer, encoded as a row of one field; None for functions that buffer an object."""
    if "initialValues" not in {method.getName() for method in function.getClass().getMethods()}:
        return None
    values = [expression.eval(None) for expression in scala_items(function.initialValues())]
    return tuple(
        row_encoder(Struct((Field("v", buffer.type),)))((_value(buffer.type, value),))
        for buffer, value in zip(buffers, values, strict=True)
    )


def _value(kind: Type, value: Any) -> object:
    """A Catalyst value in the form that the codec accepts; decimals arrive as Java objects."""
    layout = leaf_layout(kind)
    if value is not None and layout is not None and layout.form in (Form.SMALL_DECIMAL, Form.LARGE_DECIMAL):
        return Decimal(str(value.toString()) if hasattr(value, "toString") else str(value))
    return value


def _type(java: Any) -> Type:
    return parse_type(json.loads(java.json()))
