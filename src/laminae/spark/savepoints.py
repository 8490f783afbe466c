"""Go back to a savepoint: undo the epochs after it in the catalog, and set every source's checkpoint where it was.

Definitions stay as they are now: what was read with one schema is read again with the one in force at its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.updates import Rewind
from laminae.spark.repair import repair

if TYPE_CHECKING:
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage


def restore(catalog: Catalog, storage: Storage, name: str, lease_token: int) -> int:
    """The epoch that is the last one again. After a crash in between, restoring again finishes it."""
    epoch = catalog.commit([Rewind(name)], lease_token=lease_token).ids[0]
    for source in catalog.sources():
        repair(catalog, storage, source)
    return epoch
