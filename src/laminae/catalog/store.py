"""The catalog: reads, one `commit` for every write, and the lease, over the database of any driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog import leases
from laminae.catalog.reads import CatalogReads
from laminae.catalog.write.commit import commit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from laminae.catalog.model import Lease
    from laminae.catalog.port import Committed
    from laminae.catalog.updates import CatalogUpdate


class SqlCatalog(CatalogReads):
    """`laminae.catalog.port.Catalog` in SQL."""

    def commit(
        self, updates: Sequence[CatalogUpdate], *, lease_token: int | None = None, expected_seq: int | None = None
    ) -> Committed:
        return commit(self._driver, updates, lease_token, expected_seq)

    def acquire_lease(
        self,
        holder: str,
        host: str,
        pid: int,
        now: datetime,
        ttl: timedelta,
        *,
        dead: bool,
        seen_token: int | None = None,
    ) -> Lease:
        return leases.acquire(self._driver, holder, host, pid, now, ttl, dead=dead, seen_token=seen_token)

    def renew_lease(self, token: int, now: datetime, ttl: timedelta) -> Lease:
        return leases.renew(self._driver, token, now, ttl)

    def release_lease(self, token: int) -> None:
        leases.release(self._driver, token)

    def close(self) -> None:
        self._driver.close()
