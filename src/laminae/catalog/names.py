"""Names of sources, views and sinks: one namespace for the three, in which case makes no difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import DuplicateObject, InvalidName

if TYPE_CHECKING:
    from laminae.catalog.driver import Transaction

LONGEST_NAME = 255

_TAKEN = """
    SELECT 'source', name FROM sources WHERE name_key = ? AND dropped_at IS NULL
    UNION ALL SELECT 'view', name FROM views WHERE name_key = ? AND dropped_at IS NULL
    UNION ALL SELECT 'sink', name FROM sinks WHERE name_key = ? AND dropped_at IS NULL"""


def name_key(name: str) -> str:
    """What is equal for two spellings of one name."""
    return name.casefold()


def name_fault(name: str) -> str | None:
    """Why no database could keep the name, or None."""
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
    """The key under which a new object of this name is kept. DuplicateObject when any live object has the name."""
    if problem := name_fault(name):
        raise InvalidName(name=repr(name[:LONGEST_NAME]), kind=kind, problem=problem)
    key = name_key(name)
    for other_kind, other_name in transaction.query(_TAKEN, key, key, key):
        raise DuplicateObject(kind=other_kind, name=other_name)
    return key
