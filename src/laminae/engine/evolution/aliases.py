"""Former column names of a source: producers that have not been updated yet still send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.schema.column import columns_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from laminae.catalog.model import SourceRecord, VersionRecord
    from laminae.catalog.port import Catalog


def former_names(versions: Sequence[VersionRecord]) -> tuple[tuple[str, str], ...]:
    """(former name, current name) of live columns as of the last version, without names that two columns have had."""
    return former_names_by_version(versions, [versions[-1].version])[versions[-1].version]


def former_names_by_version(
    versions: Sequence[VersionRecord], wanted: Collection[int]
) -> dict[int, tuple[tuple[str, str], ...]]:
    """`former_names` as of each of the `wanted` versions, in a single pass: with 500 versions, a pass for one version
    costs as much as the pass for all of them.
    """
    owners: dict[str, set[int | None]] = {}
    aliases: dict[int, tuple[tuple[str, str], ...]] = {}
    for version in versions:
        columns = columns_of(version.schema)
        live = {node.id: node.name for node in columns}
        for node in columns:
            owners.setdefault(node.name, set()).add(node.id)
        if version.version in wanted:
            aliases[version.version] = tuple(_former(owners, live))
    return aliases


def _former(owners: Mapping[str, set[int | None]], live: Mapping[int | None, str]) -> Iterator[tuple[str, str]]:
    names = set(live.values())
    for name, ids in owners.items():
        if name in names or len(ids) > 1:
            continue
        (owner,) = ids
        if owner in live:
            yield name, live[owner]


def former_names_of(catalog: Catalog, source: SourceRecord) -> dict[str, str]:
    """Former names mapped to the column names of the current version."""
    if not spec_of(source).accepts_old_names:
        return {}
    return dict(former_names(catalog.versions(source.id)[: source.version]))
