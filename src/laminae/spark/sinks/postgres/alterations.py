"""Decide how a table must be altered before the rows of an epoch fit into it. No database access here.

Columns are matched by the column id of the relation and PostgreSQL's column number (`attnum`), which both survive a
rename. A column without such a record is matched by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.spark.sinks.postgres.type_capacity import Room, room, widened
from laminae.spark.sinks.renames import name_aside, rename_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column of the relation; `type` as PostgreSQL names it, `identity` the column id, None if it has none."""

    name: str
    type: str
    identity: str | None


@dataclass(frozen=True, slots=True)
class TableColumn:
    """An existing column of the table; `number` is its `attnum`."""

    number: int
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """The `attnum` under which a column of the relation was last written, and its type in the relation at that time."""

    number: int
    type: str


@dataclass(frozen=True, slots=True)
class Alterations:
    """In the order of execution. `lossy` are the retypes without which PostgreSQL would round values."""

    renames: tuple[tuple[str, str], ...] = ()
    additions: tuple[WantedColumn, ...] = ()
    retypes: tuple[tuple[str, str], ...] = ()
    lossy: tuple[tuple[str, str], ...] = ()


def alterations(
    wanted: Sequence[WantedColumn],
    present: Sequence[TableColumn],
    known: Mapping[str, KnownColumn],
    former: frozenset[int] = frozenset(),
) -> Alterations:
    """`known` are the recorded columns of this relation by column id, `former` the numbers of columns that belonged to
    a relation that this one has replaced: its rows have been deleted, so their values need not be preserved.
    """
    by_number = {column.number: column for column in present}
    by_name = {column.name: column for column in present}
    matched: dict[str, TableColumn] = {}
    for column in wanted:
        known_as = known.get(column.identity or "")
        if known_as is not None and known_as.number in by_number:
            matched[column.name] = by_number[known_as.number]
    used = {column.number for column in matched.values()}
    # Columns recorded for this relation. A column with another id that now has the name of one is not the same column.
    owned = {column.number for column in known.values()}
    renames = {column.name: name for name, column in matched.items()}
    additions = []
    aside = dict[str, str]()
    for column in wanted:
        if column.name in matched:
            continue
        namesake = by_name.get(column.name)
        is_other = namesake is not None and namesake.number in owned
        if (
            namesake is not None
            and namesake.number not in used
            and not is_other
            and not _is_left(namesake, column, former)
        ):
            matched[column.name] = namesake
            continue
        if namesake is not None and namesake.number not in used:
            aside[namesake.name] = name_aside(namesake.name, {*by_name, *(other.name for other in wanted)})
        additions.append(column)
    retypes = [
        (column.name, widened(matched[column.name].type, column.type), _rounds(matched[column.name], column, known))
        for column in wanted
        if column.name in matched and room(matched[column.name].type, column.type) is Room.TOO_LITTLE
    ]
    return Alterations(
        renames=tuple(rename_steps({**renames, **aside}, by_name)),
        additions=tuple(additions),
        retypes=tuple((name, kind) for name, kind, _ in retypes),
        lossy=tuple((name, kind) for name, kind, rounds in retypes if rounds),
    )


def _is_left(there: TableColumn, column: WantedColumn, former: frozenset[int]) -> bool:
    """Whether a column belonged to a replaced view and has a type that the new view's column cannot use."""
    return there.number in former and room(there.type, column.type) is Room.UNKNOWN


def _rounds(there: TableColumn, column: WantedColumn, known: Mapping[str, KnownColumn]) -> bool:
    """Whether the relation's type has grown beyond the table's in a way that PostgreSQL accepts and rounds.

    Integers that do not fit are rejected by PostgreSQL itself. If the table was created with fewer digits than the
    relation had at that time, that is taken as intended.
    """
    known_as = known.get(column.identity or "")
    if known_as is None or known_as.type == column.type:
        return False
    return there.type == "real" or there.type.startswith("numeric")
