"""Go back to a savepoint: undo the epochs after it in the catalog, and set every source's checkpoint where it was.

Definitions stay as they are now: what was read with one schema is read again with the one in force at its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.updates import Rewind, SetPosition
from laminae.spark.logs import open_log
from laminae.spark.repair import repair

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage


def restore(catalog: Catalog, storage: Storage, name: str, lease_token: int) -> int:
    """The epoch that is the last one again. After a crash in between, restoring again finishes it."""
    sources = catalog.sources()
    places = [place for source in sources for place in _places(catalog, storage, source)]
    epoch = catalog.commit([Rewind(name), *places], lease_token=lease_token).ids[0]
    for source in sources:
        repair(catalog, storage, source)
    return epoch


def _places(catalog: Catalog, storage: Storage, source: SourceRecord) -> list[SetPosition]:
    """Versions that no epoch has used hold from where the source had got to, not for what is read again."""
    last = catalog.last_batch(source.id)
    if last is None:
        return []
    item = str(open_log(source, str(storage.home)).item(last.end_offsets))
    unplaced = [version for version in catalog.versions(source.id) if version.position is None]
    return [SetPosition(source.id, version.version, item) for version in unplaced]
