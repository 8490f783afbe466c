"""The result of comparing an emitted row with its new value: four closed cases, and the changes that each emits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, assert_never

import numpy as np

from laminae.zset.canonical import canonical
from laminae.zset.record import ChangelogRecord

if TYPE_CHECKING:
    from laminae.zset.wide_integers import Bools, Codes

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class NoChange:
    """There was no row and there is none, or the row is unchanged."""


@dataclass(frozen=True, slots=True)
class Insert(Generic[Row]):
    """There is a row and there was none."""

    new: Row


@dataclass(frozen=True, slots=True)
class Update(Generic[Row]):
    """The row differs from the previous one."""

    old: Row
    new: Row


@dataclass(frozen=True, slots=True)
class Delete(Generic[Row]):
    """There was a row and there is none."""

    old: Row


Outcome = Insert[Row] | Update[Row] | Delete[Row] | NoChange

NO_CHANGE, INSERT, UPDATE, DELETE = 0, 1, 2, 3
"""Codes of the four outcomes, for columns of outcomes."""
OUTCOMES: tuple[type[NoChange | Insert[object] | Update[object] | Delete[object]], ...] = (
    NoChange,
    Insert,
    Update,
    Delete,
)


def outcomes_of(was_there: Bools, is_there: Bools, is_equal: Bools) -> Codes:
    """One outcome per key from its old and new presence; `is_equal` is only read where both are present."""
    changed = np.where(was_there, np.where(is_equal, NO_CHANGE, UPDATE), INSERT)
    return np.where(is_there, changed, np.where(was_there, DELETE, NO_CHANGE)).astype(np.int8)


def outcome_of(old: Row | None, new: Row | None) -> Outcome[Row]:
    """Compare two rows; None means that there is no row."""
    if new is None:
        return NoChange() if old is None else Delete(old)
    if old is None:
        return Insert(new)
    return NoChange() if canonical(old) == canonical(new) else Update(old, new)


def records_of(outcome: Outcome[Row], event_time: int) -> tuple[ChangelogRecord[Row], ...]:
    """The changes to emit, with -U directly before +U."""
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
