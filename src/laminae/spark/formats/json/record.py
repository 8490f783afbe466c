"""How one schema version reads a JSON record: the fields requested from `from_json`, and where each value comes from.

In addition to the version's own columns these are former names (aliases) and the field that holds the record's version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from laminae.schema.column import Column, Columns, column, columns_of
from laminae.schema.identifiers import collation_key
from laminae.schema.types import is_variant
from laminae.spark.catalyst.expression import TRUE, Expression, any_of, call, cases, literal, options_map, struct, when
from laminae.spark.catalyst.literals import default_sql
from laminae.spark.formats.json.from_json import OPTIONS, declared, is_read_as_declared, reading_field

if TYPE_CHECKING:
    from laminae.codec.decoders import Decoder


@dataclass(frozen=True, slots=True)
class RecordFields:
    """The fields that one version reads.

    `columns` are the version's own; `formers` pairs the field of a former name with the column it is an alias of;
    `stamp` is the field that holds the record's version.
    """

    columns: Columns
    formers: tuple[tuple[Column, Column], ...] = ()
    stamp: Column | None = None

    @property
    def all(self) -> Columns:
        """Every field a record of this version may have at its top level."""
        stamp = () if self.stamp is None else (self.stamp,)
        return (*self.columns, *(former for former, _ in self.formers), *stamp)

    @property
    def are_the_columns(self) -> bool:
        """Whether the parsed struct is already the row of this version: no additional field, no type to convert."""
        return self.all == self.columns and all(map(is_read_as_declared, self.columns))

    def named(self, name: str) -> Column:
        return next(node for node in self.all if node.name == name)

    def parse(self, text: Expression) -> Expression:
        return from_json(text, [node for node in self.all if not self._is_apart(node)])

    def value(self, node: Column, text: Expression, parsed: Expression) -> Expression:
        """The value under this name, in the type in which it is read."""
        return (from_json(text, [node]) if self._is_apart(node) else parsed).field(node.name)

    def declared(self, index: int, text: Expression, parsed: Expression) -> Expression:
        """Column `index` in its declared type; if its key is absent, the value under a former name."""
        node = self.columns[index]
        return declared(node, self._with_formers(node, text, parsed))

    def echo(self, text: Expression, parsed: Expression) -> Expression:
        """All values that were read, in their declared types, as JSON."""
        read = struct((node.name, declared(node, self.value(node, text, parsed))) for node in self.all)
        return call("to_json", read)

    def _is_apart(self, node: Column) -> bool:
        # Spark cannot distinguish two fields of a struct whose names differ only in case, and a rename may change
        # only the case.
        names = [collation_key(other.name) for other in self.columns]
        return node not in self.columns and collation_key(node.name) in names

    def _with_formers(self, node: Column, text: Expression, parsed: Expression) -> Expression:
        own = self.value(node, text, parsed)
        formers = [former for former, live in self.formers if live is node]
        if not formers:
            return own
        former_values = [self.value(former, text, parsed) for former in formers]
        signs = [value.is_there() for value in former_values]
        if node.default is not None:
            signs += [call("contains", text, literal(key_text(former.name))) for former in formers]
        # Only the text shows whether a key is absent. Only rows of late producers reach this branch.
        keys = call("json_object_keys", text)
        names = zip((node, *formers), (own, *former_values), strict=True)
        chosen = cases([(call("array_contains", keys, literal(n.name)), value) for n, value in names], own)
        return when(may_be_absent(node, own) & any_of(signs), chosen, own)


def record_fields(decoder: Decoder, version_field: str | None) -> RecordFields:
    columns = columns_of(decoder.schema)
    by_name = {node.name: node for node in columns}
    formers = tuple(
        (column(pa.field(former, by_name[live].type)), by_name[live])
        for former, live in decoder.aliases
        if former not in by_name and live in by_name and former != version_field
    )
    stamp = None
    if version_field is not None and version_field not in by_name:
        stamp = column(pa.field(version_field, pa.int64()))
    return RecordFields(columns, formers, stamp)


def may_be_absent(node: Column, read: Expression) -> Expression:
    """Whether the key may be absent from the text: the value is NULL, or the default that `from_json` fills in."""
    if node.default is None:
        return read.is_null()
    if not _is_comparable(node):
        return TRUE
    return read.is_null() | read.compared("<=>", Expression(default_sql(node, (node.name,))))


def from_json(text: Expression, nodes: list[Column]) -> Expression:
    """These fields of a document, each in the type in which it is read."""
    # The schema is given as JSON, because a DDL string cannot carry the metadata that fills absent keys.
    schema = StructType([reading_field(node) for node in nodes]).json()
    return call("from_json", text, literal(schema), options_map(OPTIONS))


def key_text(name: str) -> str:
    """A key as it appears in a document, unless the document escapes characters of it."""
    return json.dumps(name, ensure_ascii=False)


def _is_comparable(node: Column) -> bool:
    return node.kind != "map" and not is_variant(node.type) and all(_is_comparable(child) for child in node.children)
