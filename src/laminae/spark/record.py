"""One version's reading of a JSON record: the fields that `from_json` is asked for, and where each value is found.

Beside the version's own columns these are former names (aliases) and the field that holds a record's version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import StructType

from laminae.schema import column as schema_column
from laminae.schema.column import columns_of
from laminae.spark.literals import default_sql
from laminae.spark.reading import OPTIONS, declared, reading_field
from laminae.spark.types import is_variant

if TYPE_CHECKING:
    from pyspark.sql import Column

    from laminae.codec.decoders import Decoder


@dataclass(frozen=True, slots=True)
class RecordFields:
    """`columns` are the version's own; `formers` pairs a former name's field with the column it may stand for."""

    columns: schema_column.Columns
    formers: tuple[tuple[schema_column.Column, schema_column.Column], ...] = ()
    stamp: schema_column.Column | None = None

    @property
    def all(self) -> schema_column.Columns:
        """Every field a record of this version may have at its top level."""
        stamp = () if self.stamp is None else (self.stamp,)
        return (*self.columns, *(former for former, _ in self.formers), *stamp)

    @property
    def schema(self) -> StructType:
        return StructType([reading_field(node) for node in self.all if not self._is_apart(node)])

    def named(self, name: str) -> schema_column.Column:
        return next(node for node in self.all if node.name == name)

    def parse(self, text: Column) -> Column:
        return F.from_json(text, self.schema, OPTIONS)

    def value(self, node: schema_column.Column, text: Column, parsed: Column) -> Column:
        """What the record says under this name, as it is read."""
        if self._is_apart(node):
            return F.from_json(text, StructType([reading_field(node)]), OPTIONS).getField(node.name)
        return parsed.getField(node.name)

    def declared(self, index: int, text: Column, parsed: Column) -> Column:
        """Column `index` in its declared type, a former name standing in for an absent one."""
        node = self.columns[index]
        return declared(node, self._with_formers(node, text, parsed))

    def _is_apart(self, node: schema_column.Column) -> bool:
        # Spark cannot tell two fields of a struct apart whose names differ only in case; renames may do just that.
        names = [other.name.casefold() for other in self.columns]
        return node not in self.columns and node.name.casefold() in names

    def _with_formers(self, node: schema_column.Column, text: Column, parsed: Column) -> Column:
        own = self.value(node, text, parsed)
        formers = [former for former, live in self.formers if live is node]
        if not formers:
            return own
        found = [self.value(former, text, parsed) for former in formers]
        is_there = found[0].isNotNull()
        for value in found[1:]:
            is_there |= value.isNotNull()
        if node.default is not None:
            for former in formers:
                is_there |= text.contains(json.dumps(former.name, ensure_ascii=False))
        # Only the text knows whether a key is absent; the rows that get here are those of late producers.
        keys = F.json_object_keys(text)
        chosen = F.when(F.array_contains(keys, node.name), own)
        for former, value in zip(formers, found, strict=True):
            chosen = chosen.when(F.array_contains(keys, former.name), value)
        return F.when(may_be_absent(node, own) & is_there, chosen.otherwise(own)).otherwise(own)


def record_fields(decoder: Decoder, version_field: str | None) -> RecordFields:
    columns = columns_of(decoder.schema)
    by_name = {node.name: node for node in columns}
    formers = tuple(
        (schema_column.column(pa.field(former, by_name[live].type)), by_name[live])
        for former, live in decoder.aliases
        if former not in by_name and live in by_name
    )
    stamp = None
    if version_field is not None and version_field not in by_name:
        stamp = schema_column.column(pa.field(version_field, pa.int64()))
    return RecordFields(columns, formers, stamp)


def may_be_absent(node: schema_column.Column, read: Column) -> Column:
    """Whether the key may be missing in the text: the value is NULL, or the default that `from_json` fills in."""
    if node.default is None:
        return read.isNull()
    if not _is_comparable(node):
        return F.lit(True)
    return read.isNull() | read.eqNullSafe(F.expr(default_sql(node, (node.name,))))


def _is_comparable(node: schema_column.Column) -> bool:
    return node.kind != "map" and not is_variant(node.type) and all(_is_comparable(child) for child in node.children)
