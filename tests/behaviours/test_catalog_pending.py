"""What every catalog does with changes that wait for a person, until one is confirmed, rejected or superseded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae.catalog.model import PendingState
from laminae.errors import ChangeNotPending, ConcurrentChange
from tests.support.catalogs import NOON, SECOND, columns, drop, evolve, made, propose, resolve

if TYPE_CHECKING:
    from laminae.catalog import Catalog


def test_a_pending_change_waits_with_all_it_was_found_with(catalog: Catalog) -> None:
    source = made(catalog, "orders", "id", "price")
    (change_id,) = catalog.commit([propose(source)]).ids
    (pending,) = catalog.pending()
    assert pending.id == change_id == 1
    assert (pending.source_id, pending.source_name, pending.base_version) == (source.id, "orders", 1)
    assert pending.schema.equals(columns("id"), check_metadata=True)
    assert (pending.summary, pending.trigger, pending.schema_id, pending.registry_version) == (
        "DROP COLUMN",
        "Data",
        17,
        3,
    )
    assert (pending.state, pending.created_at, pending.resolved_at) == (PendingState.PENDING, NOON, None)


def test_the_same_change_found_again_is_the_same_pending_change(catalog: Catalog) -> None:
    source = made(catalog)
    first = catalog.commit([propose(source, "f")]).ids
    assert catalog.commit([propose(source, "f")]).ids == first
    assert catalog.commit([propose(source, "g")]).ids != first
    assert [pending.fingerprint for pending in catalog.pending(source.id)] == ["f", "g"]


def test_a_rejected_change_is_not_asked_again(catalog: Catalog) -> None:
    source = made(catalog)
    (change_id,) = catalog.commit([propose(source)]).ids
    catalog.commit([resolve(source, change_id, PendingState.REJECTED)])
    assert catalog.commit([propose(source)]).ids == (change_id,)
    assert [pending.state for pending in catalog.pending()] == [PendingState.REJECTED]


def test_confirming_and_evolving_is_one_commit(catalog: Catalog) -> None:
    source = made(catalog)
    confirmed, other = catalog.commit([propose(source, "f"), propose(source, "g")]).ids
    catalog.commit([resolve(source, confirmed), evolve(source, "x")])
    states = {pending.id: (pending.state, pending.resolved_at) for pending in catalog.pending()}
    assert states == {
        confirmed: (PendingState.CONFIRMED, NOON + SECOND),
        other: (PendingState.SUPERSEDED, NOON + SECOND),
    }


def test_a_new_version_supersedes_only_its_own_sources_changes(catalog: Catalog) -> None:
    orders, other = made(catalog), made(catalog, "other")
    catalog.commit([propose(orders), propose(other)])
    catalog.commit([evolve(orders, "x")])
    assert [pending.state for pending in catalog.pending(orders.id)] == [PendingState.SUPERSEDED]
    assert [pending.state for pending in catalog.pending(other.id)] == [PendingState.PENDING]


def test_dropping_a_source_supersedes_its_changes(catalog: Catalog) -> None:
    source = made(catalog)
    (change_id,) = catalog.commit([propose(source)]).ids
    catalog.commit([drop("source", source.id)])
    assert catalog.pending()[0].state is PendingState.SUPERSEDED
    with pytest.raises(ChangeNotPending, match="superseded"):
        catalog.commit([resolve(source, change_id)])


@pytest.mark.parametrize("state", [PendingState.CONFIRMED, PendingState.REJECTED])
def test_a_resolved_change_cannot_be_resolved_again(catalog: Catalog, state: PendingState) -> None:
    source = made(catalog)
    (change_id,) = catalog.commit([propose(source)]).ids
    catalog.commit([resolve(source, change_id, state)])
    with pytest.raises(ChangeNotPending, match=state.value):
        catalog.commit([resolve(source, change_id)])


def test_a_change_of_another_source_cannot_be_resolved(catalog: Catalog) -> None:
    orders, other = made(catalog), made(catalog, "other")
    (change_id,) = catalog.commit([propose(orders)]).ids
    with pytest.raises(ChangeNotPending, match="no such change"):
        catalog.commit([resolve(other, change_id)])


def test_a_change_found_against_an_earlier_version_does_not_wait(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([evolve(source, "x")])
    with pytest.raises(ConcurrentChange):
        catalog.commit([propose(source)])
    assert catalog.pending() == ()


def test_a_person_can_only_confirm_or_reject(catalog: Catalog) -> None:
    source = made(catalog)
    (change_id,) = catalog.commit([propose(source)]).ids
    with pytest.raises(ValueError, match="superseded"):
        catalog.commit([resolve(source, change_id, PendingState.SUPERSEDED)])
    assert catalog.pending()[0].state is PendingState.PENDING
