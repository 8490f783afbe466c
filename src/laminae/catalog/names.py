"""Names of sources, views and sinks: one case-insensitive namespace for all three."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import DuplicateObject, InvalidName

if TYPE_CHECKING:
    from laminae.catalog.drivers.protocol import Transaction

LONGEST_NAME = 255

_TAKEN = """
    SELECT 'source', name FROM sources WHERE name_key = ? AND dropped_at IS NULL
    UNION ALL SELECT 'view', name FROM views WHERE name_key = ? AND dropped_at IS NULL
    UNION ALL SELECT 'sink', name FROM sinks WHERE name_key = ? AND dropped_at IS NULL"""


def name_key(name: str) -> str:
    """The same key for every spelling of a name."""
    return name.casefold()


def name_fault(name: str) -> str | None:
    """Why no database can store the name, or None."""
    if not name:
        return "it is empty"
    if len(name) > LONGEST_NAME:
        return f"it has {len(name)} characters"
    if "\x00" in name:
        return "it contains a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in name):
        return "it contains half of a surrogate pair"
    return None


def claim_name(transaction: Transaction, kind: str, name: str) -> str:
    """The key of a new object with this name. Raises DuplicateObject if a live object has the name."""
    if problem := name_fault(name):
        raise InvalidName(name=repr(name[:LONGEST_NAME]), kind=kind, problem=problem)
    key = name_key(name)
    for other_kind, other_name in transaction.query(_TAKEN, key, key, key):
        raise DuplicateObject(kind=other_kind, name=other_name)
    return key
