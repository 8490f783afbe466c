"""Changelog semantics of a source's records: appended rows, upserts by key, or changes with a weight. No Spark here.

Options name columns as of the time they were set. The column is tracked by its id, so a rename does not affect them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine.options.connectors import format_named
from laminae.engine.source_spec import DEBEZIUM_JSON, EVENT_ORDER, Changelog, changelog_in, spec_of
from laminae.errors import InvalidOption, InvalidSchema
from laminae.schema.column import columns_of
from laminae.schema.types import is_variant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import Options, SourceRecord, VersionRecord
    from laminae.schema.column import Column

FIELDS = {
    "sequence_by": (Changelog.UPSERT, Changelog.DEBEZIUM),
    "deleted_by": (Changelog.UPSERT,),
    "weight_field": (Changelog.RETRACT,),
    "op_field": (Changelog.RETRACT,),
}
"""Options that name a column, with the changelogs that support them."""
EVENT_OPTIONS = ("debezium.time", "debezium.decimal")
"""Options that describe how values are encoded in Debezium events."""
WEIGHTS = {
    "+I": 1,
    "-U": -1,
    "+U": 1,
    "-D": -1,
    "insert": 1,
    "update_preimage": -1,
    "update_postimage": 1,
    "delete": -1,
}
"""The weight that each operation name of a record gives its row."""
# Columns that a changelog has in addition to those of the rows.
OWN_NAMES = ("_op", "_weight", "_timestamp", "_epoch")
DELTA_NAMES = ("_weight",)


def keeps_table(source: SourceRecord) -> bool:
    """Whether the source keeps a table of its rows and the changelog of that table."""
    return spec_of(source).keeps_table


def keeps_bag(source: SourceRecord) -> bool:
    """Whether that table is a multiset: rows without a key, identified by their values only."""
    return keeps_table(source) and not source.primary_key


def key_of(source: SourceRecord) -> tuple[str, ...]:
    """The current names of the primary key columns."""
    names = {node.id: node.name for node in columns_of(source.schema)}
    return tuple(names[column_id] for column_id in source.primary_key)


def row_key(source: SourceRecord) -> tuple[str, ...] | None:
    """The columns that identify a row of the source's table; None without a table or a primary key."""
    return key_of(source) if keeps_table(source) and source.primary_key else None


def field_of(source: SourceRecord, versions: Sequence[VersionRecord], name: str) -> str | None:
    """The current name of the column that an option names; None when the option is not set."""
    column_name = spec_of(source).fields.named().get(name)
    if column_name is None:
        return None
    column = _named_column(source, [version.schema for version in versions], column_name)
    if column is None:
        raise _invalid(name, source.name, f"there is no column {column_name}", "Create a source that has it.")
    return column.name


def option_columns(source: SourceRecord, history: Sequence[pa.Schema]) -> dict[int, str]:
    """Ids of columns that a source's options name, with the option. `history` has its schemas, oldest first."""
    spec = spec_of(source)
    kind = spec.changelog
    # The order of Debezium events comes from a field of the event, not of the row.
    names = [
        name for name, kinds in FIELDS.items() if kind in kinds and (kind, name) != (Changelog.DEBEZIUM, "sequence_by")
    ]
    columns = {
        name: _named_column(source, history, value) for name, value in spec.fields.named().items() if name in names
    }
    return {node.id: name for name, node in columns.items() if node is not None and node.id is not None}


@dataclass(frozen=True, slots=True)
class WeightedBy:
    """The field of a record that determines its weight: a number, or the name of an operation."""

    field: str
    is_operation: bool


def weighted_by(source: SourceRecord, history: Sequence[pa.Schema], schema: pa.Schema) -> WeightedBy | None:
    """The weight field of a retract source, by its name in `schema`; None for all other sources."""
    if not spec_of(source).is_retract:
        return None
    ((column_id, name),) = option_columns(source, history).items()
    field = next(node.name for node in columns_of(schema) if node.id == column_id)
    return WeightedBy(field, name == "op_field")


def _named_column(source: SourceRecord, history: Sequence[pa.Schema], given: str) -> Column | None:
    """The current column that had this name when the option was set. If several did, the most recent one."""
    for schema in (source.schema, *reversed(history)):
        ids = [node.id for node in columns_of(schema) if node.name == given]
        columns = [node for node in columns_of(source.schema) if ids and node.id == ids[0]]
        if columns:
            return columns[0]
    return None


def check_changelog(source: str, schema: pa.Schema, options: Options, primary_key: Sequence[int]) -> None:
    """Raise when the columns of a source do not support the changelog that its options request."""
    kind, values = changelog_in(dict(options)), dict(options)
    for name, kinds in (*FIELDS.items(), *((name, (Changelog.DEBEZIUM,)) for name in EVENT_OPTIONS)):
        if name in values and kind not in kinds:
            known = " or ".join(f"changelog = {other.value!r}" for other in kinds)
            problem = f"it has no effect with changelog = {kind.value!r}"
            raise _invalid(name, source, problem, f"Give {known}, or leave it out.")
    record_format = format_named(values.get("format", "json"))
    if (record_format.event_opener if kind is Changelog.DEBEZIUM else record_format.opener) is None:
        advice = f"Use format = {DEBEZIUM_JSON!r} or 'avro' with changelog = {Changelog.DEBEZIUM.value!r}."
        raise _invalid("format", source, f"{values.get('format')} does not go with changelog = {kind.value!r}", advice)
    for node, problem in column_problems(schema, kind, primary_key):
        raise InvalidSchema(path=node.name, problem=problem)
    if kind is Changelog.RETRACT:
        _check_retract(source, schema, values, primary_key)
    if kind.keeps_table:
        _check_table(source, schema, kind, values, primary_key)


def column_problems(schema: pa.Schema, kind: Changelog, primary_key: Sequence[int]) -> Iterator[tuple[Column, str]]:
    """Columns that a source cannot have with its changelog, each with the reason."""
    for node in columns_of(schema):
        if node.name.casefold() in own_names(kind):
            yield node, f"changelog = {kind.value!r} has a column of its own by this name"
        if kind.keeps_table and _has_variant(node):
            yield (
                node,
                f"changelog = {kind.value!r} stores a table, which has no VARIANT columns; declare it as STRING",
            )
        # Without a key, an event must carry every value of the row it changes, or it is rejected.
        if kind is Changelog.DEBEZIUM and primary_key and not node.nullable and node.id not in primary_key:
            yield node, "a delete event may contain only the key, so other columns cannot be NOT NULL"


def own_names(kind: Changelog) -> tuple[str, ...]:
    """Column names that the changelog reserves."""
    return OWN_NAMES if kind.keeps_table else DELTA_NAMES if kind is Changelog.RETRACT else ()


def _has_variant(node: Column) -> bool:
    return is_variant(node.type) or any(map(_has_variant, node.children))


def _check_table(
    source: str, schema: pa.Schema, kind: Changelog, given: dict[str, str], primary_key: Sequence[int]
) -> None:
    if not schema.names:
        problem = f"changelog = {kind.value!r} stores a table, which needs at least one; evolve = 'auto' adds others"
        raise InvalidSchema(path="columns", problem=problem)
    if kind is Changelog.UPSERT and not primary_key:
        advice = "Declare PRIMARY KEY (column) after the columns."
        raise _invalid("changelog", source, f"{kind.value!r} needs a PRIMARY KEY", advice)
    if kind is Changelog.DEBEZIUM:
        _check_debezium(source, given)
        return
    if "deleted_by" in given and not pa.types.is_boolean(_field(source, schema, "deleted_by", given).type):
        raise _invalid("deleted_by", source, f"{given['deleted_by']} is not BOOLEAN", "Name a BOOLEAN column.")
    if "sequence_by" in given:
        column_type = _field(source, schema, "sequence_by", given).type
        if pa.types.is_nested(column_type) or pa.types.is_boolean(column_type):
            advice = "Name a column of numbers, times or text."
            raise _invalid("sequence_by", source, f"{given['sequence_by']} has no order", advice)


def _check_debezium(source: str, given: dict[str, str]) -> None:
    if not re.fullmatch(r"(source\.)?\w+", given.get("sequence_by", EVENT_ORDER)):
        advice = f"Give a field of the event, such as ts_ms, or of its source, such as {EVENT_ORDER}."
        raise _invalid("sequence_by", source, "it names no field of an event", advice)
    if "version_field" in given:
        raise _invalid("version_field", source, "the rows of events have no such field", "Leave it out.")


def _check_retract(source: str, schema: pa.Schema, given: dict[str, str], primary_key: Sequence[int]) -> None:
    names = [name for name in ("weight_field", "op_field") if name in given]
    if len(names) != 1:
        advice = "Set either weight_field or op_field to the column that holds the change of a record."
        raise _invalid(
            "changelog", source, f"{Changelog.RETRACT.value!r} needs one of weight_field and op_field", advice
        )
    field = _field(source, schema, names[0], given)
    fits = pa.types.is_integer if names[0] == "weight_field" else pa.types.is_string
    if not fits(field.type):
        kinds = {"weight_field": "an integer", "op_field": "a STRING"}
        raise _invalid(names[0], source, f"{field.name} is not {kinds[names[0]]}", "Name a column of that type.")
    node = next(node for node in columns_of(schema) if node.name == field.name)
    if not field.nullable or node.id in primary_key:
        problem = f"{field.name} is NULL in every row, because it describes the change and is not data"
        raise _invalid(names[0], source, problem, "Declare it without NOT NULL, outside the PRIMARY KEY.")


def _field(source: str, schema: pa.Schema, option_name: str, given: dict[str, str]) -> pa.Field:
    name = given[option_name]
    if name not in schema.names:
        raise _invalid(option_name, source, f"there is no column {name}", f"Name one of {', '.join(schema.names)}.")
    return schema.field(name)


def _invalid(name: str, source: str, problem: str, advice: str) -> InvalidOption:
    return InvalidOption(option=name, owner=source, problem=problem, advice=advice)
