"""Schemas under which a sink has sent rows, and how they constrain the schema it sends next.

For formats whose readers resolve old messages with the newest schema: a renamed column is found by its former names,
and a column that such a reader would confuse with another one must not be sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.identity import column_ids

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from laminae.catalog.model import VersionRecord

REUSED = "earlier messages have a different column of that name"
RESCALED = "earlier messages have it as {old}, whose digits a reader would take for those of {new}"


def first_schema(versions: Sequence[VersionRecord], since: datetime) -> pa.Schema:
    """The schema of a source that was in force when the sink was created: the sink's first rows have it."""
    return [version for version in versions if version.applied_at <= since or version.version == 1][-1].schema


def former_names(schema: pa.Schema, sent: Sequence[pa.Schema]) -> dict[str, tuple[str, ...]]:
    """Names that columns of `schema` had in schemas sent before, without names that two columns have had."""
    live = {identity: name for name, identity in column_ids(schema).items()}
    owners: dict[str, set[str]] = {}
    for schema_version in (*sent, schema):
        for name, identity in column_ids(schema_version).items():
            owners.setdefault(name, set()).add(identity)
    names: dict[str, tuple[str, ...]] = {}
    for name, identities in owners.items():
        (owner, *rest) = identities
        if not rest and owner in live and name not in schema.names:
            names[live[owner]] = (*names.get(live[owner], ()), name)
    return names


def mistaken(schema: pa.Schema, sent: Sequence[pa.Schema]) -> tuple[str, str] | None:
    """(column, reason) of the first column whose values in old messages a reader with this schema would misread."""
    ids = column_ids(schema)
    for old_schema in sent:
        names = {identity: name for name, identity in column_ids(old_schema).items()}
        for name, identity in ids.items():
            if name in old_schema.names and column_ids(old_schema).get(name) != identity:
                return name, REUSED
            if identity in names:
                old, new = old_schema.field(names[identity]).type, schema.field(name).type
                if pa.types.is_decimal(old) and pa.types.is_decimal(new) and old.scale != new.scale:
                    return name, RESCALED.format(old=old, new=new)
    return None
