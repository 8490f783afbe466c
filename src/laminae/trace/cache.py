"""A process-wide LRU cache of immutable values, bounded by bytes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """A value larger than the limit is returned but not cached."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[str, tuple[int, T]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: str, size: int, load: Callable[[], T]) -> T:
        with self._lock:
            cached = self._kept.get(key)
            if cached is not None:
                self._kept.move_to_end(key)
                return cached[1]
        loaded = load()
        self.put(key, size, loaded)
        return loaded

    def put(self, key: str, size: int, value: T) -> None:
        with self._lock:
            if key in self._kept or size > self.limit:
                return
            self._kept[key] = (size, value)
            self._bytes += size
            while self._bytes > self.limit:
                _, (dropped, _) = self._kept.popitem(last=False)
                self._bytes -= dropped

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    @property
    def bytes(self) -> int:
        return self._bytes
