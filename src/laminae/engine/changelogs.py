"""What the records of a source mean: rows that are added, upserts by key, changes with a weight. No Spark here.

Options name columns as they were when they were given; a column is known by its id, so a rename does not touch them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import InvalidOption, InvalidSchema
from laminae.schema.column import columns_of
from laminae.schema.types import is_variant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import Options, SourceRecord, VersionRecord
    from laminae.schema.column import Column

APPEND, UPSERT, RETRACT, DEBEZIUM = "append", "upsert", "retract", "debezium"
TABLES = (UPSERT, DEBEZIUM)
"""The changelogs of sources that keep a table: by its primary key, or a bag of rows where it has none."""
FIELDS = {
    "sequence_by": (UPSERT, DEBEZIUM),
    "deleted_by": (UPSERT,),
    "weight_field": (RETRACT,),
    "op_field": (RETRACT,),
}
"""Options that name a column, with the changelogs that know them."""
EVENT_OPTIONS = ("debezium.time", "debezium.decimal")
"""Options that say how values are written in events."""
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
"""What each operation that a record may name does to its row."""
DEBEZIUM_JSON = "debezium-json"
EVENT_FORMATS = ("json", DEBEZIUM_JSON, "avro")
EVENT_ORDER = "source.lsn"
# What a changelog has beside the columns of the rows.
OWN_NAMES = ("_op", "_weight", "_timestamp", "_note", "_epoch", "_placed")
DELTA_NAMES = ("_weight", "_note")


def changelog_of(options: Options) -> str:
    """As it is given; what is written as Debezium's events are those."""
    given = dict(options)
    default = DEBEZIUM if given.get("format") == DEBEZIUM_JSON else APPEND
    return given.get("changelog", default)


def event_order(options: Options) -> str:
    """The field that orders Debezium's events."""
    return dict(options).get("sequence_by", EVENT_ORDER)


def keeps_table(source: SourceRecord) -> bool:
    """Whether the source keeps its rows, and the changelog of them."""
    return changelog_of(source.options) in TABLES


def keeps_bag(source: SourceRecord) -> bool:
    """Whether what it keeps are rows that nothing but their values tells apart."""
    return keeps_table(source) and not source.primary_key


def is_retract(source: SourceRecord) -> bool:
    """Whether a record of the source may take a row back."""
    return changelog_of(source.options) == RETRACT


def key_of(source: SourceRecord) -> tuple[str, ...]:
    """The columns of the primary key under their present names."""
    names = {node.id: node.name for node in columns_of(source.schema)}
    return tuple(names[column_id] for column_id in source.primary_key)


def row_key(source: SourceRecord) -> tuple[str, ...] | None:
    """What identifies a row of the table that a source keeps; None where nothing does."""
    return key_of(source) if keeps_table(source) and source.primary_key else None


def field_of(source: SourceRecord, versions: Sequence[VersionRecord], name: str) -> str | None:
    """The present name of the column that an option names; None when the option is not given."""
    given = dict(source.options).get(name)
    if given is None:
        return None
    found = _named_column(source, [version.schema for version in versions], given)
    if found is None:
        raise _invalid(name, source.name, f"there is no column {given}", "Create a source that has it.")
    return found.name


def option_columns(source: SourceRecord, history: Sequence[pa.Schema]) -> dict[int, str]:
    """The ids of columns that options of a source name, with the option; `history` has its schemas, oldest first."""
    kind = changelog_of(source.options)
    # What orders Debezium's events is a field of theirs, not of the row.
    names = [name for name, kinds in FIELDS.items() if kind in kinds and (kind, name) != (DEBEZIUM, "sequence_by")]
    given = {name: value for name, value in source.options if name in names}
    found = {name: _named_column(source, history, value) for name, value in given.items()}
    return {node.id: name for name, node in found.items() if node is not None and node.id is not None}


@dataclass(frozen=True, slots=True)
class WeightedBy:
    """The field of a record that says what it does to its row: a number, or the name of an operation."""

    field: str
    is_operation: bool


def weighted_by(source: SourceRecord, history: Sequence[pa.Schema], schema: pa.Schema) -> WeightedBy | None:
    """That of a source whose records have a weight, as one of its schemas calls it; None for all other sources."""
    if not is_retract(source):
        return None
    ((column_id, name),) = option_columns(source, history).items()
    field = next(node.name for node in columns_of(schema) if node.id == column_id)
    return WeightedBy(field, name == "op_field")


def _named_column(source: SourceRecord, history: Sequence[pa.Schema], given: str) -> Column | None:
    """The column of today that had this name when an option was given it: the newest that did."""
    for schema in (source.schema, *reversed(history)):
        ids = [node.id for node in columns_of(schema) if node.name == given]
        found = [node for node in columns_of(source.schema) if ids and node.id == ids[0]]
        if found:
            return found[0]
    return None


def check_changelog(source: str, schema: pa.Schema, options: Options, primary_key: Sequence[int]) -> None:
    """Raises when the options of a source ask for a changelog that its columns cannot give."""
    kind, given = changelog_of(options), dict(options)
    for name, kinds in (*FIELDS.items(), *((name, (DEBEZIUM,)) for name in EVENT_OPTIONS)):
        if name in given and kind not in kinds:
            known = " or ".join(f"changelog = {each!r}" for each in kinds)
            problem = f"it means nothing with changelog = {kind!r}"
            raise _invalid(name, source, problem, f"Give {known}, or leave it out.")
    if (kind == DEBEZIUM and given.get("format", "json") not in EVENT_FORMATS) or (
        kind != DEBEZIUM and given.get("format") == DEBEZIUM_JSON
    ):
        advice = f"Use format = {DEBEZIUM_JSON!r} or 'avro' with changelog = {DEBEZIUM!r}."
        raise _invalid("format", source, f"{given.get('format')} does not go with changelog = {kind!r}", advice)
    for node, problem in column_problems(schema, options, primary_key):
        raise InvalidSchema(path=node.name, problem=problem)
    if kind == RETRACT:
        _check_retract(source, schema, given, primary_key)
    if kind in TABLES:
        _check_table(source, schema, kind, given, primary_key)


def column_problems(schema: pa.Schema, options: Options, primary_key: Sequence[int]) -> Iterator[tuple[Column, str]]:
    """Columns that a source cannot have with its changelog, each with the reason."""
    kind = changelog_of(options)
    for node in columns_of(schema):
        if node.name.casefold() in own_names(options):
            yield node, f"changelog = {kind!r} has a column of its own by this name"
        if kind in TABLES and _has_variant(node):
            yield node, f"changelog = {kind!r} keeps a table, which has no VARIANT; declare it as STRING"
        # Without a key an event has every value of the row before it, or is refused.
        if kind == DEBEZIUM and primary_key and not node.nullable and node.id not in primary_key:
            yield node, "an event that deletes a row may have its key alone, so other columns cannot be NOT NULL"


def own_names(options: Options) -> tuple[str, ...]:
    """Names that columns of the source cannot have."""
    kind = changelog_of(options)
    return OWN_NAMES if kind in TABLES else DELTA_NAMES if kind == RETRACT else ()


def _has_variant(node: Column) -> bool:
    return is_variant(node.type) or any(map(_has_variant, node.children))


def _check_table(source: str, schema: pa.Schema, kind: str, given: dict[str, str], primary_key: Sequence[int]) -> None:
    if not schema.names:
        problem = f"changelog = {kind!r} keeps a table, which has one at least; evolve = 'auto' adds others"
        raise InvalidSchema(path="columns", problem=problem)
    if kind == UPSERT and not primary_key:
        advice = "Declare one: PRIMARY KEY (column) behind the columns."
        raise _invalid("changelog", source, f"{kind!r} needs a PRIMARY KEY", advice)
    if kind == DEBEZIUM:
        _check_debezium(source, given)
        return
    if "deleted_by" in given and not pa.types.is_boolean(_field(source, schema, "deleted_by", given).type):
        raise _invalid("deleted_by", source, f"{given['deleted_by']} is no BOOLEAN", "Name a BOOLEAN column.")
    if "sequence_by" in given:
        found = _field(source, schema, "sequence_by", given).type
        if pa.types.is_nested(found) or pa.types.is_boolean(found):
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
        advice = "Give either weight_field or op_field: the column that says what a record does."
        raise _invalid("changelog", source, f"{RETRACT!r} needs one of weight_field and op_field", advice)
    found = _field(source, schema, names[0], given)
    fits = pa.types.is_integer if names[0] == "weight_field" else pa.types.is_string
    if not fits(found.type):
        kinds = {"weight_field": "an integer", "op_field": "a STRING"}
        raise _invalid(names[0], source, f"{found.name} is not {kinds[names[0]]}", "Name a column of that type.")
    node = next(node for node in columns_of(schema) if node.name == found.name)
    if not found.nullable or node.id in primary_key:
        problem = f"{found.name} is NULL in every row, as it says what a record does and is no data"
        raise _invalid(names[0], source, problem, "Declare it without NOT NULL, outside the PRIMARY KEY.")


def _field(source: str, schema: pa.Schema, option_name: str, given: dict[str, str]) -> pa.Field:
    name = given[option_name]
    if name not in schema.names:
        raise _invalid(option_name, source, f"there is no column {name}", f"Name one of {', '.join(schema.names)}.")
    return schema.field(name)


def _invalid(name: str, source: str, problem: str, advice: str) -> InvalidOption:
    return InvalidOption(option=name, owner=source, problem=problem, advice=advice)
