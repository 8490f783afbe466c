"""What every aggregate of one group can do: take values in, take them back, merge, and say what it shows.

A retraction may come before its insert: what is negative for a while is kept, and whoever shows groups shows only
those with rows. Many groups at once: `grouped.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Self, TypeVar

Output = TypeVar("Output")


class RetractableAggregator(ABC, Generic[Output]):
    """State of one aggregate over one group."""

    __slots__ = ()

    @abstractmethod
    def update(self, value: object, weight: int) -> None:
        """Take in `weight` copies of the value, or take them back when negative."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in all that the other has taken in."""

    @abstractmethod
    def finalize(self) -> Output:
        """The aggregate as SQL shows it; the state goes on."""

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def supports_efficient_retraction(self) -> bool:
        """True where a few numbers are the whole state; False where the values have to be kept."""

    def accumulate(self, value: object = None) -> None:
        self.update(value, 1)

    def retract(self, value: object = None) -> None:
        self.update(value, -1)
