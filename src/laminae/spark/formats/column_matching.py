"""Matches the columns of a file with those of a schema version, and finds missing and incompatible columns. Pure.

Columns match by field id if both sides have one, else by name, else by a former name of a live column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import EXTERNAL_ID, Column, Columns, Path, columns_of, dotted
from laminae.schema.diff import match_siblings
from laminae.schema.identifiers import collation_key, column_name_problem
from laminae.schema.nesting import is_list
from laminae.schema.types import is_variant, sql_type
from laminae.schema.widening import TypeRelation, relation
from laminae.spark.formats.parquet.footers import INSTANT, WALL_CLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laminae.codec.decoders import Decoder


def under_live_names(found: pa.Schema, decoder: Decoder) -> pa.Schema:
    """The file's columns under the version's names: a former name is replaced by the live one if that is absent."""
    live = set(decoder.schema.names)
    names = set(found.names)
    former = {old: new for old, new in decoder.aliases if new not in names and old not in live}
    taken: set[str] = set()
    fields = []
    for field in found:
        name = former.get(field.name, field.name)
        if name != field.name and name in taken:
            name = field.name
        taken.add(name)
        fields.append(_in_zone(field.with_name(name), decoder.schema))
    return pa.schema(fields)


def _in_zone(field: pa.Field, schema: pa.Schema) -> pa.Field:
    # A timestamp without time zone in a TIMESTAMP column is in UTC, as in JSON and CSV; pandas writes most instants so.
    index = schema.get_field_index(field.name)
    if index >= 0 and field.type == WALL_CLOCK and schema.field(index).type == INSTANT:
        return field.with_type(INSTANT)
    return field


def misfit(found: pa.Schema, version: pa.Schema) -> str | None:
    """Why no record of such a file can be decoded with this version; None if some may be."""
    old, new = columns_of(found), columns_of(version)
    matches = match_siblings(old, new)
    for node, match in zip(new, matches, strict=True):
        if match is None and node.is_required:
            return f"the file has no column {node.name}, which is NOT NULL and has no default"
    matched = {old[match].name for match in matches if match is not None}
    if reason := _case_differs((node.name for node in old if node.name not in matched), version.names):
        return reason
    return _unrelated(old, new, ())


def version_names(found: pa.Schema, version: pa.Schema) -> list[str | None]:
    """For each column of the file its name in the version, else its own name; None if that names another column."""
    new = columns_of(version)
    names: list[str | None] = [None if name in version.names else name for name in found.names]
    for node, match in zip(new, match_siblings(columns_of(found), new), strict=True):
        if match is not None:
            names[match] = node.name
    return names


def _case_differs(names: Iterable[str], known: Iterable[str]) -> str | None:
    """The error for a name that differs from a known one only in case.

    It is neither that column nor a new one, and ignoring it would lose its values.
    """
    exact = set(known)
    folded = {collation_key(name): name for name in exact}
    for name in names:
        if name not in exact and collation_key(name) in folded:
            return f"its column {name} differs from {folded[collation_key(name)]} only in case"
    return None


def _unrelated(old: Columns, new: Columns, path: Path) -> str | None:
    for node, match in zip(new, match_siblings(old, new), strict=True):
        reason = None if match is None else _unrelated_pair(old[match], node, (*path, node.name))
        if reason is not None:
            return reason
    return None


def _unrelated_pair(old: Column, new: Column, path: Path) -> str | None:
    if is_variant(new.type) or relation(old, new) is TypeRelation.UNRELATED:
        return f"{dotted(path)} is {sql_type(old.type)} in the file, which cannot become {sql_type(new.type)}"
    if old.kind == "struct":
        return _unrelated(old.children, new.children, path)
    pairs = zip(old.children, new.children, strict=False)
    return next((reason for a, b in pairs if (reason := _unrelated_pair(a, b, (*path, b.name)))), None)


def grown(current: pa.Schema, found: pa.Schema, former: dict[str, frozenset[str]] | None = None) -> pa.Schema:
    """`current`, extended by what `found` has in addition: new columns, wider types, renames (same field id, new name)
    and the field ids themselves. `former` has the former names of each column: a rename never restores one of them."""
    fields = _grown(list(current), list(found), columns_of(current), columns_of(found), former or {})
    return pa.schema(fields, metadata=current.metadata)


def _grown(
    current: list[pa.Field], found: list[pa.Field], old: Columns, new: Columns, former: dict[str, frozenset[str]]
) -> list[pa.Field]:
    matches = match_siblings(old, new)
    continued = {match: j for j, match in enumerate(matches) if match is not None}
    names = {collation_key(field.name) for field in current}
    fields = []
    for i, field in enumerate(current):
        j = continued.get(i)
        if j is None:
            fields.append(field)
            continue
        merged = _with_number(field.with_type(_wider(old[i], new[j], former)), new[j].external_id)
        other_names = names - {collation_key(field.name)}
        if _is_renamed(old[i], new[j], former) and collation_key(new[j].name) not in other_names:
            names = other_names | {collation_key(new[j].name)}
            merged = merged.with_name(new[j].name)
        fields.append(merged)
    for j, field in enumerate(found):
        is_new = matches[j] is None and collation_key(field.name) not in names
        if is_new and column_name_problem(field.name) is None and not pa.types.is_null(field.type):
            names.add(collation_key(field.name))
            fields.append(field)
    return fields


def _is_renamed(old: Column, new: Column, former: dict[str, frozenset[str]]) -> bool:
    by_number = old.external_id is not None and old.external_id == new.external_id
    return by_number and new.name != old.name and new.name not in former.get(old.name, ())


def _with_number(field: pa.Field, number: str | None) -> pa.Field:
    metadata = dict(field.metadata or {})
    if number is None or EXTERNAL_ID in metadata:
        return field
    return field.with_metadata({**metadata, EXTERNAL_ID: number.encode()})


def _wider(old: Column, new: Column, former: dict[str, frozenset[str]]) -> pa.DataType:
    if is_variant(old.type):
        return old.type
    match relation(old, new):
        case TypeRelation.WIDER:
            return new.type
        case TypeRelation.SAME if old.kind == "struct":
            return pa.struct(_grown(list(old.type), list(new.type), old.children, new.children, former))
        case TypeRelation.SAME if is_list(old.type):
            element = old.type.value_field
            return pa.list_(element.with_type(_wider(old.children[0], new.children[0], former)))
        case TypeRelation.SAME if pa.types.is_map(old.type):
            item = old.type.item_field
            return pa.map_(old.type.key_field, item.with_type(_wider(old.children[1], new.children[1], former)))
    return old.type
