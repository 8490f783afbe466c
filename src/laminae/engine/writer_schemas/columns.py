"""Maps the columns of a writer schema to those of a source: for records, and for the rows in Debezium events.

An event has every column that its table has now, and says nothing about dropped ones: they stay, and are NULL. No
column of an event is NOT NULL here, since a delete event may carry only its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.debezium.defaults import without_defaults
from laminae.codec.value_encodings import fitted, without_rules
from laminae.engine.source_spec import spec_of
from laminae.schema.column import ID
from laminae.schema.external.writer_schema import bound, grown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.catalog.model import SourceRecord
    from laminae.engine.source_spec import SourceSpec


def bound_columns(
    source: SourceRecord, writer: pa.Schema, before: pa.Schema | None, former: Mapping[str, str]
) -> pa.Schema:
    """The writer's columns with the ids of the matching source columns; for events also with their types, if exact.

    `former` maps former names of the source's columns to the current ones, for writers that have not been updated yet.
    """
    columns = _renamed(bound(_renamed(writer, _meant(source, writer, former)), before, source.schema), writer.names)
    if not spec_of(source).is_debezium:
        return columns
    mine = {_id(field): field.type for field in source.schema}
    columns = _by_name(columns, source.schema)
    return pa.schema([fitted(field, mine[_id(field)]) if _id(field) in mine else field for field in columns])


def _meant(source: SourceRecord, writer: pa.Schema, former: Mapping[str, str]) -> list[str]:
    """The names of the writer's columns, with former names replaced by the current ones."""
    live, taken = set(source.schema.names), set(writer.names)
    return [
        former[name] if name not in live and name in former and former[name] not in taken else name
        for name in writer.names
    ]


def _renamed(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)], schema.metadata)


def _by_name(writer: pa.Schema, current: pa.Schema) -> pa.Schema:
    """The writer's columns; those that continue a dropped column bind to the source column that now has its name."""
    used, live = {_id(field) for field in writer}, {field.name: _id(field) for field in current}
    fields = []
    for field in writer:
        heir = live.get(field.name)
        if heir is not None and heir not in used and _id(field) not in live.values():
            field = field.with_metadata({**(field.metadata or {}), ID: heir})
        fields.append(field)
    return pa.schema(fields)


def grown_columns(source: SourceRecord, before: pa.Schema | None, writer: pa.Schema) -> pa.Schema:
    """The source's columns with the changes between two bound writer schemas applied."""
    columns = grown(source.schema, before, writer)
    if not spec_of(source).is_debezium:
        return columns
    plain = without_rules(columns)
    changed = {_id(field): field for field in plain if _id(field) is not None}
    new = pa.schema([field for field in plain if _id(field) is None])
    # The first schema comes with all rows of the table. A column added later appears in existing rows without an event,
    # so its default has to fill them.
    added = new if before is not None and len(before) else without_defaults(new)
    existing = [_as_here(changed.get(_id(field), field), field) for field in source.schema]
    return pa.schema([*existing, *added], metadata=source.schema.metadata)


def as_declared(spec: SourceSpec, writer: pa.Schema) -> pa.Schema:
    """The columns of a new source that adopts them from its writer schema."""
    return writer if not spec.is_debezium else without_defaults(without_rules(writer))


def _as_here(changed: pa.Field, mine: pa.Field) -> pa.Field:
    """Keeps the source's name, which events may not use yet, and its default: the table's fills no existing row."""
    return changed.with_name(mine.name).with_metadata(mine.metadata or {})


def _id(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(ID)
