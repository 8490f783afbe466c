"""Waits between attempts: they double, have a ceiling and a budget, and leave something to chance."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

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
