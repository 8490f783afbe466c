"""kill -9 of a driver's Python, of its JVM, of both, at any moment: the result equals that of an undisturbed run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crash import Place, assert_kills_change_nothing, seeded_kills

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("of_each", [2, pytest.param(10, marks=pytest.mark.chaos)])
def test_killed_drivers_leave_what_an_undisturbed_one_does(tmp_path: Path, of_each: int) -> None:
    assert_kills_change_nothing(tmp_path, seeded_kills(of_each), Place())
