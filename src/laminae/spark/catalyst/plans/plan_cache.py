"""The one cache of what Spark has analysed, planned or built in the JVM for use in many epochs.

It lives as long as the Spark application whose JVM objects it holds: plan templates, projections, leaves, schemas that
the analyzer derived. Inside that lifetime, entries are evicted with their owner, or beyond the owner's bound.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar, cast

from pyspark import SparkContext

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class PlanCache:
    """The entries of one Spark application, thread-safe.

    An owner (a decoder table, the plans of a pipeline) is referenced weakly and compared by identity: equal schemas may
    differ in their metadata, which contains defaults and column ids. A class or a function as the owner lives as
    long as the application.
    """

    __slots__ = ("_lock", "_owners")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[int, _Owned] = {}

    def get(self, owner: object, key: Hashable, make: Callable[[], T], *, most: int | None = None) -> T:
        """The owner's entry under this key. The first caller makes it; concurrent callers wait for it.

        With `most`, the least recently used entries of the owner beyond that number are evicted.
        """
        with self._lock:
            entry = self._owned(owner).entry(key, most)
        # Outside the common lock: making a plan takes up to a second and may need other entries.
        with entry.lock:
            if not entry.is_made:
                entry.value, entry.is_made = make(), True
            return cast("T", entry.value)

    def size(self, owner: object) -> int:
        """How many entries the owner has."""
        with self._lock:
            owned = self._owners.get(id(owner))
            return 0 if owned is None or owned.owner() is not owner else len(owned.entries)

    def _owned(self, owner: object) -> _Owned:
        number = id(owner)
        owned = self._owners.get(number)
        if owned is None or owned.owner() is not owner:
            owners = self._owners
            # The callback takes no lock: the garbage collector may run it while this thread holds the lock.
            owned = owners[number] = _Owned(weakref.ref(owner, lambda _: owners.pop(number, None)))
        return owned


class _Owned:
    """The entries of one owner, the least recently used first."""

    __slots__ = ("entries", "owner")

    def __init__(self, owner: weakref.ref[object]) -> None:
        self.owner = owner
        self.entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def entry(self, key: Hashable, most: int | None) -> _Entry:
        if key not in self.entries:
            self.entries[key] = _Entry()
        self.entries.move_to_end(key)
        while most is not None and len(self.entries) > most:
            self.entries.popitem(last=False)
        return self.entries[key]


class _Entry:
    __slots__ = ("is_made", "lock", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_made = False
        self.value: object = None


_lock = threading.Lock()
_applications: dict[SparkContext | None, PlanCache] = {}


def plan_cache() -> PlanCache:
    """The cache of the running Spark application. A process has one application at a time."""
    context = SparkContext._active_spark_context
    with _lock:
        cache = _applications.get(context)
        if cache is None:
            # Entries reference JVM objects and sessions of their application, so those of an earlier one are dropped.
            _applications.clear()
            cache = _applications[context] = PlanCache()
        return cache
