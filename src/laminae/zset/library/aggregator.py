"""The interface of an aggregate over one group: add values, retract them, merge, and return the result.

A retraction may arrive before its insert: negative weights are kept, and callers must show only groups that have rows.
For many groups at once, see `grouped.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Self, TypeVar

Output = TypeVar("Output")


class RetractableAggregator(ABC, Generic[Output]):
    """The state of one aggregate over one group."""

    __slots__ = ()

    @abstractmethod
    def update(self, value: object, weight: int) -> None:
        """Add `weight` copies of the value, or retract them if negative."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add everything that the other aggregator has received."""

    @abstractmethod
    def finalize(self) -> Output:
        """The result as SQL defines it; the state is unchanged."""

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def supports_efficient_retraction(self) -> bool:
        """True if the state is a few numbers; False if all values have to be kept."""

    def accumulate(self, value: object = None) -> None:
        self.update(value, 1)

    def retract(self, value: object = None) -> None:
        self.update(value, -1)
