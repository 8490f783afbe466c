"""Every row of a checkpoint's state as Spark's own `statestore` source reads it, to compare before and after."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

PARTITION = "partition_id"
JOIN = "symmetricHashJoin"
PROCESSORS = ("transformWithStateExec", "transformWithStateInPandasExec", "transformWithStateInPySparkExec")


@dataclass(frozen=True)
class Part:
    """What one read of the source gives: its schema, and its rows as dicts in the order of their texts."""

    schema: t.StructType
    rows: tuple[dict[str, object], ...]

    def texts(self, *, without: tuple[str, ...] = ()) -> list[str]:
        """Comparable rows: equal texts are equal rows, whatever the order of their fields."""
        kept = ({name: value for name, value in row.items() if name not in without} for row in self.rows)
        return sorted(json.dumps(row, default=str, sort_keys=True) for row in kept)

    def under(self, schema: t.StructType) -> Part:
        """The same rows as a person expects them under a changed schema: by name, NULL for what is new."""
        return Part(schema, tuple(_under(row, schema) for row in self.rows))  # type: ignore[misc]  # a struct is a dict


def state_of(spark: SparkSession, checkpoint: Path) -> dict[str, Part]:
    """All parts of the state at the last committed batch, by operator and what it keeps."""
    found = {}
    for name, frame in _frames(spark, str(checkpoint)):
        rows = tuple(row.asDict(True) for row in frame.collect())
        found[name] = Part(frame.schema, rows)
    return found


def _frames(spark: SparkSession, checkpoint: str) -> Iterator[tuple[str, DataFrame]]:
    operators = spark.read.format("state-metadata").load(checkpoint).collect()
    for operator, name, properties in sorted({(row.operatorId, row.operatorName, row[6]) for row in operators}):
        stores = sorted(row.stateStoreName for row in operators if row.operatorId == operator)
        reader = spark.read.format("statestore").option("operatorId", operator)
        if name == JOIN:
            for side in ("left", "right"):
                yield f"{operator} {side}", reader.option("joinSide", side).load(checkpoint)
        elif name in PROCESSORS:
            for variable in json.loads(properties)["stateVariables"]:
                yield f"{operator} {variable['stateName']}", _variable(spark, checkpoint, operator, variable)
        else:
            for store in stores:
                yield f"{operator} {store}", reader.option("storeName", store).load(checkpoint)


def _variable(spark: SparkSession, checkpoint: str, operator: int, variable: dict[str, object]) -> DataFrame:
    reader = spark.read.format("statestore").option("operatorId", operator)
    name = str(variable["stateName"])
    if name.startswith("$"):
        return reader.option("readRegisteredTimers", True).load(checkpoint)
    return reader.option("stateVarName", name).load(checkpoint)


def _under(value: object, kind: t.DataType) -> object:
    match kind:
        case t.StructType() if isinstance(value, dict):
            return {field.name: _under(value.get(field.name), field.dataType) for field in kind.fields}
        case t.ArrayType() if isinstance(value, list):
            return [_under(each, kind.elementType) for each in value]
        case t.MapType() if isinstance(value, dict):
            return {key: _under(each, kind.valueType) for key, each in value.items()}
    return value
