"""Floating-point values in integer columns: when they may change the column's type. Pure functions; no Spark here.

BIGINT to DOUBLE loses digits beyond 2^53, so it never happens automatically. For a column whose type was inferred from
data, a person has to confirm it; a declared column keeps its type, and records with fractions become dead letters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.apply import apply_changes
from laminae.schema.change import TypeNarrowed, TypeWidened
from laminae.schema.column import columns_of
from laminae.schema.compatibility import Incompatible, RequiresConfirmation
from laminae.schema.diff import diff_schemas
from laminae.schema.evolvable import EvolutionTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from laminae.catalog.model import VersionRecord
    from laminae.schema.change import SchemaChange
    from laminae.schema.column import Columns, Path
    from laminae.schema.compatibility import EvolutionVerdict

FOUND = (EvolutionTrigger.DATA, EvolutionTrigger.MANUAL_REFRESH)
LARGEST = 2**53
"""Every integer up to this bound is exact as a DOUBLE."""
LOSS = "DOUBLE does not hold whole numbers beyond 2^53"
REMEDY = "Confirm the change (refused if the source has such numbers), or declare another column for the fractions."


def takes_fractions(change: SchemaChange) -> bool:
    """Whether an integer column becomes a floating-point one."""
    if not isinstance(change, TypeWidened | TypeNarrowed):
        return False
    return bool(pa.types.is_integer(change.old_type) and pa.types.is_floating(change.new_type))


def with_fractions(verdict: EvolutionVerdict) -> EvolutionVerdict:
    """The verdict on inferred changes: integer-to-float changes may be confirmed if nothing else is refused."""
    refused = [r for r in verdict.reasons if isinstance(r.change, TypeNarrowed)]
    if not isinstance(verdict, Incompatible) or not refused:
        return verdict
    if not all(r.change is not None and takes_fractions(r.change) for r in refused):
        return verdict
    reasons = tuple(replace(r, text=LOSS, remedy=REMEDY) if r in refused else r for r in verdict.reasons)
    return RequiresConfirmation(verdict.changes, reasons)


def without_fractions(current: pa.Schema, wanted: pa.Schema, but_for: frozenset[int] = frozenset()) -> pa.Schema:
    """`wanted` with integer columns keeping their current type, except the columns in `but_for`."""
    ids = dict(_ids_by_path(columns_of(current), ()))
    return _without(current, wanted, lambda change: takes_fractions(change) and ids.get(change.path) not in but_for)


def only_fractions(current: pa.Schema, wanted: pa.Schema) -> pa.Schema:
    """The current schema with only the integer-to-float changes of `wanted` applied."""
    return _without(current, wanted, lambda change: not takes_fractions(change))


def rounded_paths(changes: Iterable[SchemaChange]) -> tuple[Path, ...]:
    """Paths of the columns whose integers these changes would round."""
    return tuple(c.path for c in changes if isinstance(c, TypeNarrowed) and takes_fractions(c))


def without_rounding(current: pa.Schema, wanted: pa.Schema) -> pa.Schema:
    """`wanted` without its BIGINT-to-float changes: such a change would be refused, together with all others."""
    return _without(current, wanted, lambda change: isinstance(change, TypeNarrowed) and takes_fractions(change))


def _without(current: pa.Schema, wanted: pa.Schema, is_left_out: Callable[[SchemaChange], bool]) -> pa.Schema:
    changes = diff_schemas(current, wanted)
    accepted = [change for change in changes if not is_left_out(change)]
    return wanted if len(accepted) == len(changes) else apply_changes(current, accepted)


def inferred_ids(versions: Iterable[VersionRecord]) -> frozenset[int]:
    """Columns whose types were inferred from data, automatically or by REFRESH, and have not been declared since."""
    inferred: set[int] = set()
    before: dict[int, pa.DataType] = {}
    for version in versions:
        types = _types_by_id(columns_of(version.schema))
        changed = {number for number, kind in types.items() if before.get(number) != kind}
        inferred = inferred | changed if version.trigger in FOUND else inferred - changed
        before = types
    return frozenset(inferred & set(before))


def rounded_ids(schema: pa.Schema, changes: Sequence[SchemaChange]) -> set[int]:
    """The columns whose integers these changes would round."""
    ids = dict(_ids_by_path(columns_of(schema), ()))
    rounded = (ids.get(c.path) for c in changes if isinstance(c, TypeNarrowed) and takes_fractions(c))
    return {number for number in rounded if number is not None}


def _types_by_id(columns: Columns) -> dict[int, pa.DataType]:
    types: dict[int, pa.DataType] = {}
    for node in columns:
        if node.id is not None:
            types[node.id] = node.type
        types |= _types_by_id(node.children)
    return types


def _ids_by_path(columns: Columns, above: Path) -> Iterator[tuple[Path, int]]:
    for node in columns:
        here = (*above, node.name)
        if node.id is not None:
            yield here, node.id
        yield from _ids_by_path(node.children, here)
