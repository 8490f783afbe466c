"""What becomes of a row that was shown before: a closed set of four answers, and the changes that each stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, assert_never

from laminae.zset.canonical import canonical
from laminae.zset.record import ChangelogRecord

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class NoChange:
    """Nothing was shown and nothing is to be, or the same as before."""


@dataclass(frozen=True, slots=True)
class Insert(Generic[Row]):
    """A row where there was none."""

    new: Row


@dataclass(frozen=True, slots=True)
class Update(Generic[Row]):
    """Another row than before."""

    old: Row
    new: Row


@dataclass(frozen=True, slots=True)
class Delete(Generic[Row]):
    """No row where there was one."""

    old: Row


Outcome = Insert[Row] | Update[Row] | Delete[Row] | NoChange

NO_CHANGE, INSERT, UPDATE, DELETE = 0, 1, 2, 3
"""The same four in columns of outcomes."""
OUTCOMES: tuple[type[NoChange | Insert[object] | Update[object] | Delete[object]], ...] = (
    NoChange,
    Insert,
    Update,
    Delete,
)


def outcome_of(old: Row | None, new: Row | None) -> Outcome[Row]:
    """None stands for no row."""
    if new is None:
        return NoChange() if old is None else Delete(old)
    if old is None:
        return Insert(new)
    return NoChange() if canonical(old) == canonical(new) else Update(old, new)


def records_of(outcome: Outcome[Row], event_time: int) -> tuple[ChangelogRecord[Row], ...]:
    """The changes to emit: -U directly before +U."""
    match outcome:
        case NoChange():
            return ()
        case Insert(new):
            return (ChangelogRecord.insert(new, event_time),)
        case Update(old, new):
            return ChangelogRecord.retraction(old, new, event_time)
        case Delete(old):
            return (ChangelogRecord.delete(old, event_time),)
        case _:
            assert_never(outcome)
