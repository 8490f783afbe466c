"""The steps of long work, told to whoever shows them. A step has a name, and counts what it has done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

OnStep: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def silent(step: str, done: int, total: int) -> None:
    """Nobody looks."""
