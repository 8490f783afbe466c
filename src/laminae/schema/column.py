"""The plain form of a schema: a tree of interned `Column` nodes, built once per `pyarrow.Schema` and cached.

Walking pyarrow objects costs microseconds per field; walking this tree costs nanoseconds. Equal nodes are the same
object, so "nothing changed below here" is one `is`.
"""

from __future__ import annotations

import json
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import InvalidSchema
from laminae.schema.identifiers import collation_key, quoted
from laminae.schema.nesting import is_list, list_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ID = b"laminae:id"
DEFAULT = b"laminae:default"
INITIAL_DEFAULT = b"laminae:initial-default"
NULL_DEFAULT = "null"
"""An initial default of NULL in metadata. Without any metadata of its own it is the write default."""
ALIASES = b"laminae:aliases"
EXTERNAL_ID = b"PARQUET:field_id"

Path = tuple[str, ...]

# Arrow recurses over nested types without a depth check. This limit is far below Arrow's and far above any real schema.
MAX_DEPTH = 100
MAX_DIGITS = 18


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Column:
    """One column, struct field, list element, map key or map value. Equality is identity: nodes are interned.

    `kind` is the type without its children (`int64`, `struct`, `list`), so two kinds compare as strings.

    `default` is the write default: the value of records that do not have the key. `initial_default` is the value of
    records of versions before the column. It is fixed when the column is added and never changes (as in Iceberg v3).
    """

    field: pa.Field
    name: str
    type: pa.DataType
    kind: str
    nullable: bool
    id: int | None
    external_id: str | None
    default: str | None
    initial_default: str | None
    aliases: tuple[str, ...]
    children: tuple[Column, ...]

    @property
    def is_nested(self) -> bool:
        """Whether the type can contain columns; a struct without fields is nested, too."""
        return bool(self.children) or self.kind == "struct"

    @property
    def is_required(self) -> bool:
        """Whether a record without this column has no value to give it."""
        return not self.nullable and self.default is None

    @property
    def is_required_of_older_versions(self) -> bool:
        """Whether a record of a version before this column has no value to give it."""
        return not self.nullable and self.initial_default is None


Columns = tuple[Column, ...]

_interned: weakref.WeakValueDictionary[tuple[object, ...], Column] = weakref.WeakValueDictionary()
_trees: dict[int, tuple[weakref.ref[pa.Schema], Columns]] = {}
# `batch.schema` is a new Python object for every batch; comparing it with the last few (0.1 us each) finds its tree.
# Rebound, never changed: other threads may be walking it.
_recent: tuple[tuple[pa.Schema, Columns], ...] = ()
MOST_RECENT = 8


def columns_of(schema: pa.Schema) -> Columns:
    """The tree of `schema`. Raises `InvalidSchema` for empty or duplicate names, duplicate ids and excessive depth."""
    global _recent
    known = _trees.get(id(schema))
    if known is not None and known[0]() is schema:
        return known[1]
    tree = next((tree for recent, tree in _recent if recent.equals(schema, check_metadata=True)), None)
    if tree is None:
        tree = _siblings(schema, ())
        _check_ids(tree)
        _recent = ((schema, tree), *_recent[: MOST_RECENT - 1])
    key = id(schema)
    _trees[key] = (weakref.ref(schema, lambda _: _trees.pop(key, None)), tree)
    return tree


def column(field: pa.Field, *, name: str | None = None, path: Path = ()) -> Column:
    """The interned node of one field; `name` replaces the field's own for list elements, map keys and values."""
    if len(path) > MAX_DEPTH:
        raise InvalidSchema(path=dotted(path[:3]) + "...", problem=f"nested deeper than {MAX_DEPTH} levels")
    metadata = field.metadata or {}
    name = field.name if name is None else name
    kind, children = _structure(field.type, (*path, name))
    node_id = _int(metadata, ID, (*path, name))
    external = _text(metadata, EXTERNAL_ID, (*path, name))
    default = _text(metadata, DEFAULT, (*path, name))
    initial = _text(metadata, INITIAL_DEFAULT, (*path, name))
    key = (name, kind, field.nullable, tuple(sorted(metadata.items())), children)
    node = _interned.get(key)
    if node is None:
        node = Column(
            field=field,
            name=name,
            type=field.type,
            kind=kind,
            nullable=field.nullable,
            id=node_id,
            external_id=external,
            default=default,
            initial_default=default if initial is None else None if initial == NULL_DEFAULT else initial,
            aliases=_aliases(metadata, (*path, name)),
            children=children,
        )
        _interned[key] = node
    return node


def dotted(path: Sequence[str]) -> str:
    """A path as a person writes it; parts that hold a dot or a backtick are quoted."""
    plain = ".".join(path)
    if "`" not in plain and plain.count(".") == len(path) - 1:
        return plain
    return ".".join(quoted(part) if "." in part or "`" in part else part for part in path)


def _structure(kind: pa.DataType, path: Path) -> tuple[str, Columns]:
    if pa.types.is_struct(kind):
        return "struct", _siblings(kind, path)
    if pa.types.is_map(kind):
        key = column(kind.key_field, name="key", path=path)
        return "sorted_map" if kind.keys_sorted else "map", (key, column(kind.item_field, name="value", path=path))
    if is_list(kind):
        return list_kind(kind), (column(kind.value_field, name="element", path=path),)
    return str(kind), ()


def _siblings(fields: Iterable[pa.Field], path: Path) -> Columns:
    columns = tuple([column(field, path=path) for field in fields])
    seen: dict[str, str] = {}
    for node in columns:
        if not node.name:
            raise InvalidSchema(path=dotted(path) or "the top level", problem="a column has an empty name")
        other = seen.setdefault(collation_key(node.name), node.name)
        if other != node.name:
            raise InvalidSchema(path=dotted((*path, node.name)), problem=f"its name differs from {other} only in case")
    outside = [node.external_id for node in columns if node.external_id is not None]
    if len(set(outside)) != len(outside):
        twice = next(external_id for external_id in outside if outside.count(external_id) > 1)
        where = dotted(path) or "the top level"
        raise InvalidSchema(path=where, problem=f"{EXTERNAL_ID.decode()} {twice} belongs to two columns")
    if len(seen) != len(columns):
        names = [node.name for node in columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidSchema(path=dotted((*path, twice)), problem="the name occurs twice")
    return columns


def _check_ids(tree: Columns) -> None:
    seen: dict[int, str] = {}
    stack: list[tuple[Column, Path]] = [(node, (node.name,)) for node in tree]
    while stack:
        node, path = stack.pop()
        if node.id is not None:
            if node.id in seen:
                raise InvalidSchema(path=dotted(path), problem=f"column id {node.id} also belongs to {seen[node.id]}")
            seen[node.id] = dotted(path)
        stack.extend((child, (*path, child.name)) for child in node.children)


def _int(metadata: Mapping[bytes, bytes], key: bytes, path: Path) -> int | None:
    text = metadata.get(key)
    if text is None:
        return None
    if not text.isdigit() or len(text) > MAX_DIGITS:
        raise InvalidSchema(path=dotted(path), problem=f"{key.decode()} is {text!r}, not a number")
    return int(text)


def _text(metadata: Mapping[bytes, bytes], key: bytes, path: Path) -> str | None:
    value = metadata.get(key)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        raise InvalidSchema(path=dotted(path), problem=f"{key.decode()} is not UTF-8 text") from None


def _aliases(metadata: Mapping[bytes, bytes], path: Path) -> tuple[str, ...]:
    text = metadata.get(ALIASES)
    if text is None:
        return ()
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidSchema(path=dotted(path), problem=f"{ALIASES.decode()} is not a JSON list of names")
    return tuple(names)
