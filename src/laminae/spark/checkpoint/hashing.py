"""The new key of a row as columns of Spark, so that Spark itself says to which partition it belongs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.state.mapping import Added, ElementMapping, Filled, Kept, Mapping, StructMapping, ValueMapping
from laminae.state.types import Array, Map, Struct, Type, to_json

if TYPE_CHECKING:
    from pyspark.sql import Column

    from laminae.state.checkpoint.report import Side


def new_key_columns(key: Column, side: Side) -> list[Column]:
    """The fields of the new key, each made of the old key: a query is partitioned by them in this order."""
    assert isinstance(side.mapping, StructMapping)
    return _fields(key, side.old, side.new, side.mapping)


def _fields(value: Column, old: Struct, new: Struct, mapping: StructMapping) -> list[Column]:
    columns = []
    for field, source in zip(new.fields, mapping.sources, strict=True):
        match source:
            case Kept(position, inside):
                before = old.fields[position]
                columns.append(changed(value.getField(before.name), before.type, field.type, inside).alias(field.name))
            case Added() | Filled():
                columns.append(F.lit(None).cast(_spark(field.type)).alias(field.name))
    return columns


def changed(value: Column, old: Type, new: Type, mapping: Mapping | None) -> Column:
    """A value under its new type."""
    match mapping, old, new:
        case StructMapping(), Struct(), Struct():
            return F.when(value.isNotNull(), F.struct(*_fields(value, old, new, mapping)))
        case ElementMapping(inside), Array(before, _), Array(after, _):
            return F.transform(value, lambda each: changed(each, before, after, inside))
        case ValueMapping(inside), Map(_, before, _), Map(_, after, _):
            return F.transform_values(value, lambda _, each: changed(each, before, after, inside))
    return value


def _spark(kind: Type) -> spark.DataType:
    return spark._parse_datatype_json_string(json.dumps(to_json(kind)))
