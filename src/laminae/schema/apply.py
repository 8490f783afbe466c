"""Apply changes to a schema: the result is the schema they were diffed from, with the old column ids.

All changes take effect at once (see change.py), so their order in the tuple does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from laminae.errors import InvalidChange
from laminae.schema.arguments import require, require_each
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
from laminae.schema.column import DEFAULT, ID, NULL_DEFAULT, Column, Columns, Path, columns_of, dotted
from laminae.schema.identity import default_metadata, without_ids
from laminae.schema.nesting import container, inner_fields
from laminae.schema.projection import ColumnProjection, Matcher, projection_between

if TYPE_CHECKING:
    from collections.abc import Sequence


def apply_evolution(schema: pa.Schema, changes: Iterable[SchemaChange]) -> tuple[pa.Schema, ColumnProjection]:
    """The evolved schema, and the projection that carries a batch of the old one into it."""
    require("apply_evolution", pa.Schema, schema=schema)
    changes = tuple(changes) if isinstance(changes, Iterable) else changes
    require_each("apply_evolution", SchemaChange.__args__, "changes", changes)
    evolved = apply_changes(schema, changes)
    return evolved, projection_between(schema, evolved, _matcher(changes))


def _matcher(changes: Sequence[SchemaChange]) -> Matcher:
    """Matches columns as the changes say. Without ids, two schemas do not distinguish a rename from drop and add."""
    added = {change.path for change in changes if isinstance(change, ColumnAdded)}
    renamed = {change.path: change.new_name for change in changes if isinstance(change, ColumnRenamed)}
    dropped = {change.path for change in changes if isinstance(change, ColumnDropped)}

    def match(old: Columns, new: Columns, old_path: Path, new_path: Path) -> list[int | None]:
        names = {
            renamed.get((*old_path, node.name), node.name): i
            for i, node in enumerate(old)
            if (*old_path, node.name) not in dropped
        }
        return [None if (*new_path, node.name) in added else names.get(node.name) for node in new]

    return match


def apply_changes(schema: pa.Schema, changes: Iterable[SchemaChange]) -> pa.Schema:
    edits = _Edits.of(changes)
    if not edits.touched:
        return schema
    if edits.adds or edits.types:
        edits.kept_ids = _kept_ids(columns_of(schema), (), edits)
    fields = _siblings([node.field for node in columns_of(schema)], columns_of(schema), (), (), edits)
    if edits.waiting:
        path, change = next(iter(edits.waiting.items()))
        raise InvalidChange(path=dotted(path[0]), problem=f"{type(change).__name__} finds no such column")
    return pa.schema(fields, metadata=schema.metadata)


@dataclass(slots=True)
class _Edits:
    """Changes by the path at which they are applied. `waiting` has the unused ones: any left at the end is an error."""

    drops: dict[Path, ColumnDropped] = field(default_factory=dict)
    renames: dict[Path, ColumnRenamed] = field(default_factory=dict)
    types: dict[Path, TypeWidened | TypeNarrowed | TypeChanged] = field(default_factory=dict)
    nullability: dict[Path, NullabilityChanged] = field(default_factory=dict)
    defaults: dict[Path, DefaultChanged] = field(default_factory=dict)
    adds: defaultdict[Path, list[ColumnAdded]] = field(default_factory=lambda: defaultdict(list))
    moves: defaultdict[Path, list[ColumnMoved]] = field(default_factory=lambda: defaultdict(list))
    kept_ids: set[int] = field(default_factory=set)
    touched: set[Path] = field(default_factory=set)
    waiting: dict[tuple[Path, type], SchemaChange] = field(default_factory=dict)

    @classmethod
    def of(cls, changes: Iterable[SchemaChange]) -> _Edits:
        edits = cls()
        for change in changes:
            edits._file(change)
            edits.waiting[change.path, type(change)] = change
            edits.touched.update(change.path[:depth] for depth in range(len(change.path) + 1))
        return edits

    def _file(self, change: SchemaChange) -> None:
        match change:
            case ColumnDropped():
                self.drops[change.path] = change
            case ColumnRenamed():
                self.renames[change.path] = change
            case TypeWidened() | TypeNarrowed() | TypeChanged():
                self.types[change.path] = change
            case NullabilityChanged():
                self.nullability[change.path] = change
            case DefaultChanged():
                self.defaults[change.path] = change
            case ColumnAdded():
                self.adds[change.path[:-1]].append(change)
            case ColumnMoved():
                self.moves[change.path[:-1]].append(change)
            case _:
                assert_never(change)

    def used(self, change: SchemaChange) -> None:
        self.waiting.pop((change.path, type(change)), None)


def _siblings(
    fields: Sequence[pa.Field], nodes: Sequence[Column], old_path: Path, new_path: Path, edits: _Edits
) -> list[pa.Field]:
    remaining: list[pa.Field] = []
    for arrow, node in zip(fields, nodes, strict=True):
        path = (*old_path, node.name)
        if drop := edits.drops.get(path):
            edits.used(drop)
            continue
        name = node.name
        if rename := edits.renames.get(path):
            edits.used(rename)
            name = rename.new_name
        remaining.append(_column(arrow, node, name, path, (*new_path, name), edits))
    return _arrange(remaining, new_path, edits)


def _column(arrow: pa.Field, node: Column, name: str, old_path: Path, new_path: Path, edits: _Edits) -> pa.Field:
    """One field that is not dropped. `arrow` has the field's own name, which differs from `name` in lists and maps."""
    if old_path not in edits.touched and new_path not in edits.touched:
        return arrow
    kind = _type(arrow, node, old_path, new_path, edits)
    nullable, metadata = arrow.nullable, dict(arrow.metadata or {})
    if relaxed := edits.nullability.get(new_path):
        edits.used(relaxed)
        nullable = relaxed.nullable
    if default := edits.defaults.get(new_path):
        edits.used(default)
        metadata = default_metadata(metadata, default.new_default, _initial_default(node, default))
    if node.name == arrow.name:
        return pa.field(name, kind, nullable, metadata or None)
    return pa.field(arrow.name, kind, nullable, metadata or None)


def _initial_default(node: Column, change: DefaultChanged) -> str | None:
    text = change.new_initial_default
    return node.initial_default if text is None else None if text == NULL_DEFAULT else text


def _type(arrow: pa.Field, node: Column, old_path: Path, new_path: Path, edits: _Edits) -> pa.DataType:
    retyped = edits.types.get(new_path)
    if retyped is not None:
        edits.used(retyped)
        if not (isinstance(retyped, TypeWidened) and retyped.is_physical and node.is_nested):
            return without_ids(pa.field("", retyped.new_type), edits.kept_ids).type
    if not node.is_nested:
        return arrow.type
    if node.kind == "struct":
        return pa.struct(_siblings(list(arrow.type), node.children, old_path, new_path, edits))
    inner = inner_fields(arrow.type)
    rebuilt = [
        _column(field, child, child.name, (*old_path, child.name), (*new_path, child.name), edits)
        for field, child in zip(inner, node.children, strict=True)
    ]
    return container(arrow.type if retyped is None else retyped.new_type, rebuilt)


def _arrange(kept: list[pa.Field], path: Path, edits: _Edits) -> list[pa.Field]:
    """The columns: added and moved ones at the index of their change, all others around them in their old order."""
    adds, moves = edits.adds.get(path, []), edits.moves.get(path, [])
    if not adds and not moves:
        return kept
    by_name = {arrow.name: arrow for arrow in kept}
    placed: dict[int, pa.Field] = {}
    wanted: list[tuple[ColumnMoved | ColumnAdded, int, pa.Field]] = [
        (move, move.position, by_name.pop(move.path[-1])) for move in moves if move.path[-1] in by_name
    ]
    wanted += [(add, add.position, added_field(add, edits.kept_ids)) for add in adds if add.position is not None]
    for change, position, arrow in wanted:
        if position in placed:
            raise InvalidChange(path=change.column_name, problem=f"position {position} is taken twice")
        placed[position] = arrow
        edits.used(change)
    for add in adds:
        edits.used(add)
    last = [added_field(change, edits.kept_ids) for change in adds if change.position is None]
    total = len(by_name) + len(placed)
    if placed and max(placed) >= total:
        raise InvalidChange(path=dotted(path), problem=f"position {max(placed)} is beyond the {total} columns")
    rest = iter(by_name.values())
    return [placed[at] if at in placed else next(rest) for at in range(total)] + last


def _kept_ids(nodes: Columns, path: Path, edits: _Edits) -> set[int]:
    """Ids of the columns that stay. An added column that claims one of them is another column and must not have it."""
    ids: set[int] = set()
    for node in nodes:
        here = (*path, node.name)
        if here not in edits.drops:
            ids |= {node.id} if node.id is not None else set()
            ids |= _kept_ids(node.children, here, edits)
    return ids


def added_field(change: ColumnAdded, kept_ids: set[int]) -> pa.Field:
    """The Arrow field of an added column, with all other metadata that its field had in the diffed schema."""
    metadata = dict((change.column_field.metadata if change.column_field is not None else None) or {})
    if change.id is not None:
        metadata[ID] = str(change.id).encode()
    if change.default is not None:
        metadata[DEFAULT] = change.default.encode()
    return without_ids(pa.field(change.path[-1], change.type, change.nullable, metadata or None), kept_ids)
