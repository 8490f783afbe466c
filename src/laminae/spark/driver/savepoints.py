"""Restore a savepoint: undo later epochs in the catalog, and rebuild every source's checkpoint at its old offsets.

Definitions are not restored: records that are read again are decoded with the schema version in force at their
position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.updates import Rewind, SetPosition
from laminae.spark.driver.repair import repair
from laminae.spark.sources.registry import open_source

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage


def restore(catalog: Catalog, storage: Storage, name: str, lease_token: int) -> int:
    """Restore the savepoint and return its epoch, now the last one. After a crash, calling it again completes it."""
    sources = catalog.sources()
    places = [place for source in sources for place in _places(catalog, storage, source)]
    epoch = catalog.commit([Rewind(name), *places], lease_token=lease_token).ids[0]
    for source in sources:
        repair(catalog, storage, source)
    return epoch


def _places(catalog: Catalog, storage: Storage, source: SourceRecord) -> list[SetPosition]:
    """Pin schema versions that no epoch has used yet to the position that the source reached before the restore.

    Otherwise they would apply to the records that are read again.
    """
    last = catalog.last_batch(source.id)
    if last is None:
        return []
    item = str(open_source(source, str(storage.home)).source.item(last.end_offsets))
    unplaced = [version for version in catalog.versions(source.id) if version.position is None]
    return [SetPosition(source.id, version.version, item) for version in unplaced]
