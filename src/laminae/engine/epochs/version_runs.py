"""The columns of many schema versions combined: which versions have a column, in which form and under which names.

One decoder then reads the records of all versions. Its size grows with the number of changes, not with versions times
columns: an unchanged column occurs once. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from laminae.schema.column import columns_of
from laminae.schema.widening import TypeRelation, relation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa

    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.schema.column import Column, Columns

# A former name, and the properties of its column that decide how it is decoded.
_Use = tuple[str, str, "Columns", bool]
Runs = tuple[tuple[int, int], ...]
"""Versions, as the first and the last of each run of adjacent versions in a table."""


@dataclass(frozen=True, slots=True)
class HeldColumn:
    """A column as these versions have it: one name, type, default and NOT NULL."""

    node: Column
    versions: Runs


@dataclass(frozen=True, slots=True)
class FormerName:
    """A former name of a column in records of these versions; the column has the type of `live` in all of them.

    Either all of them have a default or none has; the current name does not matter. Otherwise each name of a frequently
    renamed column would occur once for every later name.
    """

    name: str
    live: Column
    versions: Runs


@dataclass(frozen=True, slots=True)
class SharedColumn:
    """One column id. `formers` are in the order in which they are tried; `absent` versions lack the column."""

    id: int
    held: tuple[HeldColumn, ...]
    formers: tuple[FormerName, ...]
    absent: Runs


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """A column that records are checked against: its form in the last epoch, and the versions of epochs that check it.

    `present` are the versions whose schema has the column, `strict` those in which it is NOT NULL.
    """

    node: Column
    present: Runs
    strict: Runs


def can_share(table: DecoderTable) -> bool:
    """Whether one decoder can read all versions of the table: plain records whose columns all have an id."""
    if len(table.decoders) < 2 and not table.judged:
        # A single version is read faster by its own decoder.
        return False
    if table.writers is not None or table.heads or table.event_order is not None:
        return False
    if table.has_old_rows or not table.exact_times or any(decoder.version < 1 for decoder in table.decoders):
        return False
    schemas = (table.current, *(decoder.schema for decoder in table.decoders))
    if any(node.id is None for schema in schemas for node in columns_of(schema)):
        return False
    stamp = table.version_field
    # Some versions would read a column of that name as the version stamp and others as a value.
    return stamp is None or stamp.casefold() not in {name.casefold() for name in _names(table.decoders)}


def _names(decoders: Sequence[Decoder]) -> set[str]:
    own = {name for decoder in decoders for name in decoder.schema.names}
    return own | {former for decoder in decoders for former, _ in decoder.aliases}


def shared_columns(table: DecoderTable) -> tuple[SharedColumn, ...]:
    """Every column of any version in the table, in the order in which they first appear."""
    numbers = [decoder.version for decoder in table.decoders]
    held: dict[int, dict[Column, list[int]]] = defaultdict(lambda: defaultdict(list))
    formers: dict[int, dict[_Use, list[int]]] = defaultdict(lambda: defaultdict(list))
    lives: dict[_Use, Column] = {}
    orders: dict[int, list[list[str]]] = defaultdict(list)
    for place, decoder in enumerate(table.decoders):
        columns = columns_of(decoder.schema)
        by_name = {node.name: node for node in columns}
        for node in columns:
            held[_id(node)][node].append(place)
        names_by_id: dict[int, list[str]] = defaultdict(list)
        for former, live in decoder.aliases:
            if former not in by_name and live in by_name and former != table.version_field:
                node = by_name[live]
                use = (former, node.kind, node.children, node.default is None)
                formers[_id(node)][use].append(place)
                lives[use] = node
                names_by_id[_id(node)].append(former)
        for number, names in names_by_id.items():
            if not orders[number] or orders[number][-1] != names:
                orders[number].append(names)
    return tuple(
        SharedColumn(
            number,
            tuple(HeldColumn(node, _runs(places, numbers)) for node, places in nodes.items()),
            tuple(
                FormerName(use[0], lives[use], _runs(formers[number][use], numbers))
                for use in _ordered(formers[number], orders[number])
            ),
            _runs(sorted(set(range(len(numbers))).difference(*nodes.values())), numbers),
        )
        for number, nodes in held.items()
    )


def checked_columns(table: DecoderTable) -> tuple[CheckedColumn, ...]:
    """The columns that records are checked against, those of the current schema first."""
    if not table.judged:
        return tuple(CheckedColumn(node, (), ()) for node in columns_of(table.current))
    numbers = [judged.version for judged in table.judged]
    present: dict[int, list[int]] = defaultdict(list)
    strict: dict[int, list[int]] = defaultdict(list)
    newest: dict[int, Column] = {_id(node): node for node in columns_of(table.current)}
    for node in newest.values():
        present[_id(node)] = []
    for place, judged in enumerate(table.judged):
        for node in columns_of(judged.schema):
            present[_id(node)].append(place)
            if not node.nullable:
                strict[_id(node)].append(place)
    for judged in reversed(table.judged):
        for node in columns_of(judged.schema):
            newest.setdefault(_id(node), node)
    return tuple(
        CheckedColumn(newest[number], _runs(places, numbers), _runs(strict[number], numbers))
        for number, places in present.items()
    )


def are_judged_together(one: pa.Schema, other: pa.Schema) -> bool:
    """Whether one pass can check records against both schemas: a value that fits its column in one is valid in both.

    NOT NULL and the set of columns may differ: each epoch checks its own.
    """
    first, second = ({node.id: node for node in columns_of(schema)} for schema in (one, other))
    if None in first or None in second:
        return False
    pairs = ((first[number], second[number]) for number in first.keys() & second.keys())
    return all(old is new or _never_lost(old, new) for old, new in pairs)


def _never_lost(old: Column, new: Column) -> bool:
    if old.type == new.type:
        return True
    if old.children or new.children or relation(old, new) is not TypeRelation.WIDER:
        return False
    # An instant may be out of range in a finer unit.
    return not any(map(_is_instant, (old, new)))


def _is_instant(node: Column) -> bool:
    return node.kind.startswith(("timestamp", "date", "time", "null"))


def _ordered(uses: Collection[_Use], orders: Sequence[Sequence[str]]) -> list[_Use]:
    """The former names in an order consistent with that of every version; each has a part of one common order."""
    sorter: TopologicalSorter[str] = TopologicalSorter({use[0]: () for use in uses})
    for names in orders:
        for before, after in pairwise(names):
            sorter.add(after, before)
    rank = {name: place for place, name in enumerate(sorter.static_order())}
    return sorted(uses, key=lambda use: rank[use[0]])


def joined_runs(runs: Iterable[tuple[int, int]], table: DecoderTable) -> Runs:
    """The same versions as the fewest possible runs, without overlaps."""
    numbers = [decoder.version for decoder in table.decoders]
    place_of = {number: place for place, number in enumerate(numbers)}
    places = {place for first, last in runs for place in range(place_of[first], place_of[last] + 1)}
    return _runs(sorted(places), numbers)


def _runs(places: Iterable[int], numbers: Sequence[int]) -> Runs:
    """Adjacent table entries form one run, even if version numbers between them are missing: those have no records."""
    runs = []
    for _, run in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]):
        members = [place for _, place in run]
        runs.append((numbers[members[0]], numbers[members[-1]]))
    return tuple(runs)


def _id(node: Column) -> int:
    assert node.id is not None  # checked by `can_share`
    return node.id
