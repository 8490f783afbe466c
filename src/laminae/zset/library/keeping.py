"""MIN, MAX and COUNT(DISTINCT) of one group: they keep every value with its weight, so that each can be retracted."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Self

from laminae.zset.canonical import canonical, order_key
from laminae.zset.library.aggregator import Output, RetractableAggregator

if TYPE_CHECKING:
    from collections.abc import Hashable


class KeepingAggregator(RetractableAggregator[Output]):
    """The state is every value with its weight; values with weight 0 are removed. NULL is never stored."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[object, int]] = {}

    def update(self, value: object, weight: int) -> None:
        if value is None:
            return
        key = canonical(value)
        _, before = self._kept.get(key, (value, 0))
        after = before + weight
        if after:
            self._kept[key] = (value, after)
        else:
            self._kept.pop(key, None)
        self._changed(value, before > 0, after > 0)

    def _changed(self, value: object, was_there: bool, is_there: bool) -> None:
        """Hook for aggregates that cache their result."""

    def merge(self, other: Self) -> None:
        for value, weight in list(other._kept.values()):
            self.update(value, weight)

    def present(self) -> list[object]:
        """The values with a positive weight."""
        return [value for value, weight in self._kept.values() if weight > 0]

    def reset(self) -> None:
        self._kept = {}

    def supports_efficient_retraction(self) -> bool:
        return False


class CountDistinctAggregator(KeepingAggregator[int]):
    """COUNT(DISTINCT x)."""

    __slots__ = ()

    def finalize(self) -> int:
        return len(self.present())


class MinAggregator(KeepingAggregator[object]):
    """MIN(x): NULL if there are no values. They are searched again only after the smallest was retracted."""

    __slots__ = ("_best", "_is_known")

    def __init__(self) -> None:
        super().__init__()
        self._best: object = None
        self._is_known = True

    def _changed(self, value: object, was_there: bool, is_there: bool) -> None:
        if was_there == is_there or not self._is_known:
            return
        if is_there:
            self._best = value if self._best is None else self._better(self._best, value)
        elif canonical(value) == canonical(self._best):
            self._is_known = False

    def finalize(self) -> object:
        if not self._is_known:
            present = self.present()
            self._best = reduce(self._better, present) if present else None
            self._is_known = True
        # The result must not depend on whether 0.0 or -0.0 arrived first.
        return self._best + 0.0 if isinstance(self._best, float) else self._best

    def reset(self) -> None:
        super().reset()
        self._best, self._is_known = None, True

    @staticmethod
    def _better(one: object, other: object) -> object:
        return min(one, other, key=order_key)


class MaxAggregator(MinAggregator):
    """MAX(x): NULL if there are no values; NaN is larger than any number."""

    __slots__ = ()

    @staticmethod
    def _better(one: object, other: object) -> object:
        return max(one, other, key=order_key)
