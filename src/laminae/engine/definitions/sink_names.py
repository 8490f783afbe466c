"""Column names that a sink's target system cannot hold: one table, used by CREATE SINK, ALTER and delivery.

A name introduced by data is not refused here: it becomes a column of its source, and only the sink stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.errors import SinkColumnRefused
from laminae.schema.avro.names import is_name
from laminae.schema.column import columns_of, dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from laminae.schema.column import Columns, Path

POSTGRES_BYTES = 63
"""Longer names are truncated without an error (NAMEDATALEN of a standard server build)."""
POSTGRES_OWN = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})


@dataclass(frozen=True, slots=True)
class NameRule:
    """`problem` returns why a name cannot be used, or None. `is_for_keys`: the rule applies to key columns only."""

    problem: Callable[[str], str | None]
    is_for_keys: bool = False
    is_for_fields: bool = False
    """The rule also applies to fields inside structs."""


def _in_avro(name: str) -> str | None:
    return None if is_name(name) else "Avro names contain only letters, digits and _, and do not start with a digit"


def _in_postgres(name: str) -> str | None:
    if len(name.encode()) > POSTGRES_BYTES:
        return f"PostgreSQL truncates names after {POSTGRES_BYTES} bytes, and this one has {len(name.encode())}"
    return "PostgreSQL reserves that name for a system column" if name in POSTGRES_OWN else None


def _in_iceberg_keys(name: str) -> str | None:
    # pyiceberg splits a column name in a filter at its dots (0.11), so the filter would match no row.
    return "Iceberg filters read a key name with a dot as a struct field" if "." in name else None


RULES: dict[tuple[str, str | None], NameRule] = {
    ("kafka", "avro"): NameRule(_in_avro, is_for_fields=True),
    ("postgres", None): NameRule(_in_postgres),
    ("iceberg", None): NameRule(_in_iceberg_keys, is_for_keys=True),
}


def name_problems(
    connector: str, kind: str | None, names: tuple[str, ...] | pa.Schema, key: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """(path of a column, why the sink cannot write it). A tuple of `names`, without types, comes from a view."""
    rule = RULES.get((connector, kind)) or RULES.get((connector, None))
    if rule is None:
        return
    for path in [(name,) for name in names] if isinstance(names, tuple) else _paths(columns_of(names), ()):
        is_asked = len(path) == 1 or rule.is_for_fields
        problem = rule.problem(path[-1]) if is_asked and (not rule.is_for_keys or path[0] in key) else None
        if problem is not None:
            yield dotted(path), problem


def refuse_names(
    sink: str, connector: str, kind: str | None, names: tuple[str, ...] | pa.Schema, key: Sequence[str]
) -> None:
    for column, problem in name_problems(connector, kind, names, key):
        raise SinkColumnRefused(sink=sink, column=column, problem=problem)


def _paths(columns: Columns, above: Path) -> Iterator[Path]:
    for node in columns:
        path = (*above, node.name)
        yield path
        yield from _paths(node.children, path)
