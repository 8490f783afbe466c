"""Names that columns of a source had before: a producer that is late still uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.options import option
from laminae.schema.column import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.model import SourceRecord, VersionRecord
    from laminae.catalog.port import Catalog


def former_names(versions: Sequence[VersionRecord]) -> tuple[tuple[str, str], ...]:
    """Former names of live columns, as of the last of `versions`. A name that two columns ever had means neither."""
    owners: dict[str, set[int | None]] = {}
    for version in versions:
        for node in columns_of(version.schema):
            owners.setdefault(node.name, set()).add(node.id)
    live = {node.id: node.name for node in columns_of(versions[-1].schema)}
    found: list[tuple[str, str]] = []
    for name, ids in owners.items():
        (owner, *others) = ids
        if not others and owner in live and live[owner] != name and name not in live.values():
            found.append((name, live[owner]))
    return tuple(found)


def accepts_former_names(source: SourceRecord) -> bool:
    return option(source.options, "accept_old_names") != "false"


def former_names_of(catalog: Catalog, source: SourceRecord) -> dict[str, str]:
    """What former names mean in the version in force."""
    if not accepts_former_names(source):
        return {}
    return dict(former_names(catalog.versions(source.id)[: source.version]))
