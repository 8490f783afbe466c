"""What changed between two schemas, as a canonical tuple of changes: drops, renames, types, nullability, defaults,
adds, moves. Columns are matched by identity first, so swaps, rename + widen and re-used names come out right.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import compress, pairwise
from operator import is_not
from typing import NamedTuple

import pyarrow as pa

from laminae.schema.arguments import require
from laminae.schema.change import (
    ColumnAdded,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    DefaultChanged,
    NullabilityChanged,
    SchemaChange,
    TypeChanged,
    TypeNarrowed,
    TypeWidened,
)
from laminae.schema.column import NULL_DEFAULT, Column, Columns, Path, columns_of
from laminae.schema.widening import TypeRelation, relation


def diff_schemas(old: pa.Schema, new: pa.Schema) -> tuple[SchemaChange, ...]:
    """The changes that lead from `old` to `new`: `apply_evolution(old, diff_schemas(old, new))` gives `new`."""
    require("diff_schemas", pa.Schema, old=old, new=new)
    return diff_columns(columns_of(old), columns_of(new))


# Every batch of a stream compares the same pair; nodes are interned, so a repeated lookup costs 2 us.
@lru_cache(maxsize=256)
def diff_columns(old: Columns, new: Columns) -> tuple[SchemaChange, ...]:
    if old is new:
        return ()
    differences = _Found()
    differences.siblings(old, new, (), ())
    return differences.changes()


def match_siblings(old: Columns, new: Columns) -> list[int | None]:
    """For each new column the index of the old column it continues, or None. Both ids, else both external ids,
    else the name, else an alias decide; a pair that could be compared by id and differs is never matched by name."""
    result: list[int | None] = [None] * len(new)
    if not old or not new:
        return result
    free = dict.fromkeys(range(len(old)))
    for key in (_by_id, _by_external_id):
        index = {key(node): i for i, node in enumerate(old) if i in free and key(node) is not None}
        for j, node in enumerate(new):
            i = index.get(key(node)) if result[j] is None and key(node) is not None else None
            if i is not None and (key is _by_id or not (old[i].id is not None and node.id is not None)):
                result[j] = i
                free.pop(i)
    names = {old[i].name: i for i in free}
    for j, node in enumerate(new):
        i = names.get(node.name) if result[j] is None else None
        if i is not None and not _have_ids(old[i], node):
            result[j] = i
            free.pop(i)
    if free and None in result:
        _match_aliases(old, new, result, free)
    return result


def _match_aliases(old: Columns, new: Columns, result: list[int | None], free: dict[int, None]) -> None:
    names = {old[i].name: i for i in free}
    former = {alias: i for i in free for alias in old[i].aliases}
    for j, node in enumerate(new):
        if result[j] is None:
            candidates = (*(names.get(alias) for alias in node.aliases), former.get(node.name))
            i = next((i for i in candidates if i in free and not _have_ids(old[i], node)), None)
            if i is not None:
                result[j] = i
                free.pop(i)


def _by_id(node: Column) -> object:
    return node.id


def _by_external_id(node: Column) -> object:
    return node.external_id


def _have_ids(old: Column, new: Column) -> bool:
    """Whether both have an id of the same kind, which decides whether they are the same column."""
    return (old.id is not None and new.id is not None) or (old.external_id is not None and new.external_id is not None)


class _Place(NamedTuple):
    """The position of the siblings that need matching: after `offset` others, and followed by more if `is_followed`."""

    offset: int
    is_followed: bool


class _Found:
    """Collects changes by kind while both trees are traversed in parallel."""

    __slots__ = ("adds", "defaults", "drops", "moves", "nullability", "renames", "types")

    def __init__(self) -> None:
        self.drops: list[SchemaChange] = []
        self.renames: list[SchemaChange] = []
        self.types: list[SchemaChange] = []
        self.nullability: list[SchemaChange] = []
        self.defaults: list[SchemaChange] = []
        self.adds: list[SchemaChange] = []
        self.moves: list[SchemaChange] = []

    def changes(self) -> tuple[SchemaChange, ...]:
        groups = (self.drops, self.renames, self.types, self.nullability, self.defaults, self.adds, self.moves)
        return tuple([change for group in groups for change in group])

    def siblings(self, old: Columns, new: Columns, old_path: Path, new_path: Path) -> None:
        if old is new:
            return
        first, differing = _in_place(old, new)
        for i in differing:
            self.pair(old[i], new[i], old_path, new_path)
        if first == len(old):
            self.adds.extend([_added(node, new_path) for node in new[first:]])
            return
        rest = min(len(old), len(new)) - first
        last, behind = _in_place(old[: -rest - 1 : -1], new[: -rest - 1 : -1]) if rest else (0, [])
        middle_old, middle_new = old[first : len(old) - last], new[first : len(new) - last]
        matches = match_siblings(middle_old, middle_new)
        for node, source in zip(middle_new, matches, strict=True):
            if source is not None and middle_old[source] is not node:
                self.pair(middle_old[source], node, old_path, new_path)
        self._dropped_and_added(middle_old, middle_new, matches, old_path, new_path, _Place(first, last > 0))
        self._moved(middle_new, matches, new_path, first)
        for i in reversed(behind):
            self.pair(old[-i - 1], new[-i - 1], old_path, new_path)

    def pair(self, old: Column, new: Column, old_path: Path, new_path: Path) -> None:
        """Two nodes known to be the same column: what differs between them, and below them."""
        old_path, new_path = (*old_path, old.name), (*new_path, new.name)
        if old.name != new.name:
            self.renames.append(ColumnRenamed(old_path, new.name))
        match relation(old, new):
            case TypeRelation.WIDER:
                self.types.append(TypeWidened(new_path, old.type, new.type))
            case TypeRelation.NARROWER:
                self.types.append(TypeNarrowed(new_path, old.type, new.type))
            case TypeRelation.UNRELATED:
                self.types.append(TypeChanged(new_path, old.type, new.type))
            case TypeRelation.PHYSICAL:
                self.types.append(TypeWidened(new_path, old.type, new.type, is_physical=True))
                self._children(old, new, old_path, new_path)
            case TypeRelation.SAME:
                self._children(old, new, old_path, new_path)
        if old.nullable is not new.nullable:
            self.nullability.append(NullabilityChanged(new_path, new.nullable))
        if old.default != new.default or old.initial_default != new.initial_default:
            self.defaults.append(DefaultChanged(new_path, old.default, new.default, _other_initial(old, new)))

    def _children(self, old: Column, new: Column, old_path: Path, new_path: Path) -> None:
        if old.kind == "struct":
            self.siblings(old.children, new.children, old_path, new_path)
            return
        for a, b in zip(old.children, new.children, strict=True):
            if a is not b:
                self.pair(a, b, old_path, new_path)

    def _dropped_and_added(
        self,
        old: Columns,
        new: Columns,
        matches: list[int | None],
        old_path: Path,
        new_path: Path,
        place: _Place,
    ) -> None:
        matched = {i for i in matches if i is not None}
        if len(matched) == len(old) == len(new):
            return
        dropped = [i for i in range(len(old)) if i not in matched]
        added = [j for j, i in enumerate(matches) if i is None]
        renamed = _possible_renames(old, new, matches, dropped, added)
        back = {j: i for i, j in renamed.items()}
        for i in dropped:
            node = old[i]
            perhaps = new[renamed[i]].name if i in renamed else None
            path = (*old_path, node.name)
            self.drops.append(ColumnDropped(path, node.type, node.nullable, node.default, node.id, perhaps))
        last_kept = (
            len(new) if place.is_followed else max((j for j, i in enumerate(matches) if i is not None), default=-1)
        )
        for j in added:
            perhaps = old[back[j]].name if j in back else None
            position = place.offset + j if j < last_kept else None
            self.adds.append(_added(new[j], new_path, position, perhaps))

    def _moved(self, new: Columns, matches: list[int | None], new_path: Path, offset: int) -> None:
        order = [(j, i) for j, i in enumerate(matches) if i is not None]
        if all(a[1] < b[1] for a, b in pairwise(order)):
            return
        staying = _longest_increasing([i for _, i in order])
        self.moves.extend(ColumnMoved((*new_path, new[j].name), offset + j) for j, i in order if i not in staying)


def _other_initial(old: Column, new: Column) -> str | None:
    if old.initial_default == new.initial_default:
        return None
    return NULL_DEFAULT if new.initial_default is None else new.initial_default


def _added(node: Column, parent: Path, position: int | None = None, perhaps: str | None = None) -> ColumnAdded:
    path = (*parent, node.name)
    return ColumnAdded(path, node.type, node.nullable, node.default, node.id, position, perhaps, node.field)


def _in_place(old: Columns, new: Columns) -> tuple[int, list[int]]:
    """How many leading columns continue at the same index (mostly all), and which of them differ."""
    shared = min(len(old), len(new))
    differing: list[int] = []
    for i in compress(range(shared), map(is_not, old, new)):
        if not _is_continued_in_place(old[i], new[i]):
            return i, differing
        differing.append(i)
    return shared, differing


def _is_continued_in_place(old: Column, new: Column) -> bool:
    if old.id is not None and new.id is not None:
        return old.id == new.id
    return old.id is None and new.id is None and old.external_id == new.external_id and old.name == new.name


def _possible_renames(
    old: Columns, new: Columns, matches: list[int | None], dropped: list[int], added: list[int]
) -> dict[int, int]:
    """Dropped -> added columns of the same type after the same matched neighbour, where no id distinguishes them."""
    if not dropped or not added:
        return {}
    neighbour_of_new: dict[int, int | None] = {}
    last: int | None = None
    for j, i in enumerate(matches):
        neighbour_of_new[j] = last
        last = last if i is None else i
    matched = {i for i in matches if i is not None}
    result: dict[int, int] = {}
    waiting = list(added)
    last = None
    for i, node in enumerate(old):
        if i in matched:
            last = i
            continue
        for j in waiting:
            if neighbour_of_new[j] == last and new[j].type == node.type and not _have_ids(node, new[j]):
                result[i] = j
                waiting.remove(j)
                break
    return result


def _longest_increasing(values: list[int]) -> set[int]:
    """The values of one longest increasing subsequence: the columns that need not move."""
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for value in values:
        at = bisect_left(tails, value)
        before[value] = tails[at - 1] if at else None
        tails[at : at + 1] = [value]
    subsequence: set[int] = set()
    value_or_none: int | None = tails[-1] if tails else None
    while value_or_none is not None:
        subsequence.add(value_or_none)
        value_or_none = before[value_or_none]
    return subsequence
