"""The lease on a home: which process runs its pipelines.

Fencing tokens only grow, so a driver that lost its lease cannot commit. There is no clock here: the caller passes the
current time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from laminae.catalog.model import Lease
from laminae.catalog.rows import instant, instant_text
from laminae.errors import LeaseHeld, LeaseLost

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from laminae.catalog.drivers.protocol import Driver, Row, Transaction

_LEASE = "SELECT token, holder, host, pid, expires_at FROM leases"
NOBODY = "nobody"


def current_lease(driver: Driver) -> Lease | None:
    return _lease(driver.query(_LEASE)[0])


def acquire(
    driver: Driver,
    holder: str,
    host: str,
    pid: int,
    now: datetime,
    ttl: timedelta,
    *,
    dead: bool,
    seen_token: int | None,
) -> Lease:
    with driver.write() as transaction:
        row = transaction.query(_LEASE)[0]
        present = _lease(row)
        if present is not None and present.expires_at > now and not (dead and seen_token in (None, present.token)):
            raise LeaseHeld(
                location=driver.location,
                holder=_holder_text(present),
                seconds=math.ceil((present.expires_at - now).total_seconds()),
            )
        lease = Lease(holder=holder, host=host, pid=pid, token=row[0] + 1, expires_at=now + ttl)
        transaction.execute(
            "UPDATE leases SET token = ?, holder = ?, host = ?, pid = ?, expires_at = ?",
            lease.token,
            holder,
            host,
            pid,
            instant_text(lease.expires_at),
        )
    return lease


def renew(driver: Driver, token: int, now: datetime, ttl: timedelta) -> Lease:
    with driver.write() as transaction:
        present = assert_token(transaction, driver.location, token)
        lease = Lease(present.holder, present.host, present.pid, token, now + ttl)
        transaction.execute("UPDATE leases SET expires_at = ?", instant_text(lease.expires_at))
    return lease


def release(driver: Driver, token: int) -> None:
    """Release the lease. Does nothing if another holder has taken it over."""
    with driver.write() as transaction:
        transaction.execute(
            "UPDATE leases SET holder = NULL, host = NULL, pid = NULL, expires_at = NULL WHERE token = ?", token
        )


def assert_token(transaction: Transaction, location: str, token: int) -> Lease:
    row = transaction.query(_LEASE)[0]
    present = _lease(row)
    if present is None or present.token != token:
        raise LeaseLost(
            location=location, holder=_holder_text(present) if present else NOBODY, found=row[0], expected=token
        )
    return present


def _lease(row: Row) -> Lease | None:
    token, holder, host, pid, expires_at = row
    if holder is None:
        return None
    return Lease(holder=holder, host=host, pid=pid, token=token, expires_at=instant(expires_at))


def _holder_text(lease: Lease) -> str:
    return f"process {lease.pid} on {lease.host}"
