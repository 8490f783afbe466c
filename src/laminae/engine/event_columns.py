"""The columns that a writer's schema tells, as those of a source: in general, and of the rows in Debezium's events.

An event has every column that its table has now, and says nothing of those that are gone: they stay, and are NULL. No
column of it is NOT NULL here, since an event that deletes a row has its key alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.sent_defaults import without_defaults
from laminae.codec.sent_values import fitted, without_rules
from laminae.engine.changelogs import DEBEZIUM, changelog_of
from laminae.schema.column import ID
from laminae.schema.writer import bound, grown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.catalog.model import Options, SourceRecord


def bound_columns(
    source: SourceRecord, told: pa.Schema, before: pa.Schema | None, former: Mapping[str, str]
) -> pa.Schema:
    """The writer's columns with the ids of those that they are; of events also in their types, where that is exact.

    `former` are names that the source's columns had before, with those that they have: a writer may be late.
    """
    found = _renamed(bound(_renamed(told, _meant(source, told, former)), before, source.schema), told.names)
    if changelog_of(source.options) != DEBEZIUM:
        return found
    mine = {_id(field): field.type for field in source.schema}
    found = _by_name(found, source.schema)
    return pa.schema([fitted(field, mine[_id(field)]) if _id(field) in mine else field for field in found])


def _meant(source: SourceRecord, told: pa.Schema, former: Mapping[str, str]) -> list[str]:
    """The names of the writer's columns, present ones for those that it still calls as they were called before."""
    live, taken = set(source.schema.names), set(told.names)
    return [
        former[name] if name not in live and name in former and former[name] not in taken else name
        for name in told.names
    ]


def _renamed(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)], schema.metadata)


def _by_name(writer: pa.Schema, current: pa.Schema) -> pa.Schema:
    """The writer's columns, those that continue one which is gone as the one that has taken its name here."""
    used, live = {_id(field) for field in writer}, {field.name: _id(field) for field in current}
    made = []
    for field in writer:
        heir = live.get(field.name)
        if heir is not None and heir not in used and _id(field) not in live.values():
            field = field.with_metadata({**(field.metadata or {}), ID: heir})
        made.append(field)
    return pa.schema(made)


def grown_columns(source: SourceRecord, before: pa.Schema | None, writer: pa.Schema) -> pa.Schema:
    """The source's columns with what changed between two bound writers' schemas."""
    made = grown(source.schema, before, writer)
    if changelog_of(source.options) != DEBEZIUM:
        return made
    plain = without_rules(made)
    changed = {_id(field): field for field in plain if _id(field) is not None}
    new = pa.schema([field for field in plain if _id(field) is None])
    # With the first schema come all rows of the table; a column that is new later is there without an event.
    added = new if before is not None and len(before) else without_defaults(new)
    kept = [_as_here(changed.get(_id(field), field), field) for field in source.schema]
    return pa.schema([*kept, *added], metadata=source.schema.metadata)


def as_declared(options: Options, told: pa.Schema) -> pa.Schema:
    """The columns of a new source whose writer's schema tells them."""
    return told if changelog_of(options) != DEBEZIUM else without_defaults(without_rules(told))


def _as_here(changed: pa.Field, mine: pa.Field) -> pa.Field:
    """With its name, which events may not have yet, and its default: that of the table fills no row that is here."""
    return changed.with_name(mine.name).with_metadata(mine.metadata or {})


def _id(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(ID)
