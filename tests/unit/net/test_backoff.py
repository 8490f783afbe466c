"""Waits between attempts: they double, have a ceiling and a budget, and leave something to chance."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from laminae.net.backoff import Backoff
from tests.support.registry_answers import Waits


def test_waits_double_up_to_the_longest() -> None:
    waits = Waits()
    assert len(list(waits.retry(attempts=9, budget=1000).rounds())) == 9
    assert waits.waited == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(1, 12))
def test_a_wait_is_a_share_of_its_ceiling(chance: float, attempts: int) -> None:
    full, part = Waits(), Waits()
    list(full.retry(1.0, attempts, 1000).rounds())
    list(part.retry(chance, attempts, 1000).rounds())
    assert part.waited == [chance * ceiling for ceiling in full.waited]


def test_no_attempt_begins_after_the_budget() -> None:
    waits = Waits()
    assert len(list(waits.retry(attempts=100, budget=1.0).rounds())) == 4
    assert waits.now <= 1.0


def test_a_server_that_names_a_wait_gets_it_up_to_the_longest() -> None:
    waits = Waits()
    for attempt in replace(waits.retry(chance=0.0, attempts=3), longest=2.0).rounds():
        attempt.wait_at_least = 1.5 if not waits.waited else 100.0
    assert waits.waited == [1.5, 2.0]


def test_waits_of_a_loop_double_up_to_the_longest() -> None:
    backoff = Backoff(first=1.0, longest=60.0, jitter=0.0)
    assert [backoff.wait(failures) for failures in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_thousand_failures_wait_as_long_as_ten() -> None:
    assert Backoff(jitter=0.0).wait(10_000) == 60.0


def test_without_a_failure_the_ceiling_is_the_first_wait() -> None:
    assert Backoff(first=3.0).ceiling(0) == 3.0


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 100))
def test_jitter_is_the_share_of_the_wait_that_is_random(jitter: float, chance: float, failures: int) -> None:
    backoff = Backoff(jitter=jitter, chance=lambda: chance)
    ceiling = backoff.ceiling(failures)
    assert (1 - jitter) * ceiling <= backoff.wait(failures) <= ceiling * (1 + 1e-12)
