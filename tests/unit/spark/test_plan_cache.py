"""The plan cache: entries are made once, and are gone with their owner, their bound or their Spark application."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext

from laminae.spark.catalyst.plans.plan_cache import PlanCache, plan_cache

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Owner:
    """Owners of equal value are different owners."""

    name: str = "orders"


class Plan:
    """What a cache holds: it can be referenced weakly."""


def unexpected() -> Plan:
    pytest.fail("the entry was made again")


def made(cache: PlanCache, owner: object, key: str, most: int | None = None) -> Plan:
    return cache.get(owner, key, Plan, most=most)


def test_an_entry_is_made_once() -> None:
    cache, owner = PlanCache(), Owner()
    plan = made(cache, owner, "a")
    assert cache.get(owner, "a", unexpected) is plan
    assert made(cache, owner, "b") is not plan


def test_none_is_an_entry_like_others() -> None:
    cache, owner = PlanCache(), Owner()
    assert cache.get(owner, "a", lambda: None) is None
    cache.get(owner, "a", unexpected)


def test_equal_owners_have_entries_of_their_own() -> None:
    cache, first, second = PlanCache(), Owner(), Owner()
    assert first == second
    assert made(cache, first, "a") is not made(cache, second, "a")


def test_entries_are_released_with_their_owner() -> None:
    cache, owner, other = PlanCache(), Owner(), Owner()
    plan, kept = weakref.ref(made(cache, owner, "a")), made(cache, other, "a")
    del owner
    gc.collect()
    assert plan() is None
    assert cache.get(other, "a", unexpected) is kept


def test_an_owner_at_the_address_of_an_earlier_one_starts_empty() -> None:
    cache = PlanCache()
    for _ in range(100):
        owner = Owner()
        assert cache.size(owner) == 0
        made(cache, owner, "a")
        assert cache.size(owner) == 1
        del owner
    assert len(cache._owners) == 0


def test_the_least_recently_used_entry_is_evicted_beyond_the_bound() -> None:
    cache, owner = PlanCache(), Owner()
    first, second = made(cache, owner, "first", most=2), made(cache, owner, "second", most=2)
    assert made(cache, owner, "first", most=2) is first
    made(cache, owner, "third", most=2)
    assert cache.size(owner) == 2
    assert cache.get(owner, "first", unexpected, most=2) is first
    assert made(cache, owner, "second", most=2) is not second


def test_the_bound_of_one_owner_does_not_evict_entries_of_another() -> None:
    cache, bounded, other = PlanCache(), Owner(), Owner()
    kept = made(cache, other, "a")
    for key in "abc":
        made(cache, bounded, key, most=1)
    assert cache.get(other, "a", unexpected) is kept


def test_an_entry_that_could_not_be_made_is_tried_again() -> None:
    cache, owner = PlanCache(), Owner()

    def broken() -> Plan:
        raise ValueError("Spark cannot plan it")

    with pytest.raises(ValueError, match="cannot plan"):
        cache.get(owner, "a", broken)
    assert isinstance(made(cache, owner, "a"), Plan)


def test_an_entry_may_need_others_of_its_owner() -> None:
    cache, owner = PlanCache(), Owner()
    outer = cache.get(owner, "template", lambda: (made(cache, owner, "stages"), Plan()))
    assert cache.get(owner, "stages", unexpected) is outer[0]


def test_a_thread_waits_for_the_entry_that_another_makes_and_for_no_other() -> None:
    cache, owner, begun, may_end = PlanCache(), Owner(), threading.Event(), threading.Event()

    def slow() -> Plan:
        begun.set()
        assert may_end.wait(10)
        return Plan()

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: cache.get(owner, "slow", slow))
        assert begun.wait(10)
        second = threads.submit(lambda: cache.get(owner, "slow", unexpected))
        made(cache, owner, "other")
        assert not second.done()
        may_end.set()
        assert first.result(10) is second.result(10)


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Pretend that another Spark application runs; the caches of the real one are put back."""
    monkeypatch.setattr("laminae.spark.catalyst.plans.plan_cache._applications", {})
    return lambda context: monkeypatch.setattr(SparkContext, "_active_spark_context", context)


def test_an_application_has_one_cache(application: Callable[[object], None]) -> None:
    application(object())
    assert plan_cache() is plan_cache()


def test_a_second_application_starts_with_an_empty_cache(application: Callable[[object], None]) -> None:
    owner = Owner()
    application(object())
    plan = weakref.ref(made(plan_cache(), owner, "a"))
    application(object())
    assert plan_cache().size(owner) == 0
    gc.collect()
    assert plan() is None, "the entries of the first application hold its JVM objects"
    assert isinstance(made(plan_cache(), owner, "a"), Plan)


def test_an_owner_that_outlives_its_application_evicts_nothing_of_the_next(
    application: Callable[[object], None],
) -> None:
    owner, other = Owner(), Owner()
    application(object())
    made(plan_cache(), owner, "a")
    application(object())
    kept = made(plan_cache(), other, "a")
    del owner
    gc.collect()
    assert plan_cache().get(other, "a", unexpected) is kept
