"""Who may run the pipelines of a home: one holder at a time, told apart by a token that only grows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from laminae.catalog.model import Lease
from laminae.catalog.updates import PutSetting
from laminae.errors import LeaseHeld, LeaseLost
from tests.support.catalogs import NOON, SECOND

if TYPE_CHECKING:
    from laminae.catalog import Catalog

TTL = timedelta(seconds=15)


def acquire(catalog: Catalog, holder: str = "a", *, at: timedelta = timedelta(), dead: bool = False) -> Lease:
    return catalog.acquire_lease(holder, "host-1", 4711, NOON + at, TTL, dead=dead)


def test_the_first_holder_gets_the_lease(catalog: Catalog) -> None:
    lease = acquire(catalog)
    assert lease == Lease("a", "host-1", 4711, 1, NOON + TTL)
    assert catalog.lease() == lease


def test_a_live_holder_is_named_and_the_second_refused(catalog: Catalog) -> None:
    lease = acquire(catalog)
    with pytest.raises(LeaseHeld, match="run by process 4711 on host-1") as refused:
        acquire(catalog, "b", at=TTL - SECOND / 2)
    assert refused.value.params["seconds"] == 1
    assert catalog.lease() == lease


def test_an_expired_lease_is_taken_over_with_a_greater_token(catalog: Catalog) -> None:
    acquire(catalog)
    assert acquire(catalog, "b", at=TTL).token == 2


def test_a_dead_holder_is_replaced_at_once(catalog: Catalog) -> None:
    acquire(catalog)
    assert acquire(catalog, "b", dead=True).holder == "b"


def test_of_two_successors_of_a_dead_holder_one_wins(catalog: Catalog) -> None:
    dead = acquire(catalog, "dead")
    first = catalog.acquire_lease("first", "host-1", 1, NOON, TTL, dead=True, seen_token=dead.token)
    with pytest.raises(LeaseHeld, match="first"):
        catalog.acquire_lease("second", "host-1", 2, NOON, TTL, dead=True, seen_token=dead.token)
    assert catalog.lease() == first


def test_a_renewed_lease_lives_longer(catalog: Catalog) -> None:
    token = acquire(catalog).token
    renewed = catalog.renew_lease(token, NOON + TTL, TTL)
    assert renewed == catalog.lease() == Lease("a", "host-1", 4711, token, NOON + 2 * TTL)
    with pytest.raises(LeaseHeld):
        acquire(catalog, "b", at=TTL)


def test_a_lost_lease_can_neither_be_renewed_nor_commit(catalog: Catalog) -> None:
    old = acquire(catalog).token
    new = acquire(catalog, "b", dead=True).token
    with pytest.raises(LeaseLost, match="taken over by process 4711 on host-1") as lost:
        catalog.renew_lease(old, NOON, TTL)
    assert (lost.value.params["expected"], lost.value.params["found"]) == (old, new)
    with pytest.raises(LeaseLost):
        catalog.commit([PutSetting("a", "1")], lease_token=old)
    assert catalog.settings() == {}
    catalog.commit([PutSetting("a", "2")], lease_token=new)
    assert catalog.settings() == {"a": "2"}


def test_a_commit_without_a_token_needs_no_lease(catalog: Catalog) -> None:
    acquire(catalog)
    catalog.commit([PutSetting("a", "1")])
    assert catalog.settings() == {"a": "1"}


def test_a_released_lease_is_free_and_its_token_spent(catalog: Catalog) -> None:
    old = acquire(catalog).token
    catalog.release_lease(old)
    assert catalog.lease() is None
    with pytest.raises(LeaseLost, match="nobody"):
        catalog.commit([], lease_token=old)
    with pytest.raises(LeaseLost):
        catalog.renew_lease(old, NOON, TTL)
    assert acquire(catalog, "b").token == old + 1


def test_releasing_a_lost_lease_leaves_the_new_holder_alone(catalog: Catalog) -> None:
    old = acquire(catalog).token
    lease = acquire(catalog, "b", dead=True)
    catalog.release_lease(old)
    assert catalog.lease() == lease
