"""Which reader types read which writer types: the greatest set of pairs whose demands are met within the set.

Pairs are held until refuted, and a refutation travels to the pairs that needed it. That settles cycles exactly (Java
keeps answers found under an assumption that later fails) and, without recursion, references of any depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from laminae.schema.avro.rules import Fault, demands

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laminae.schema.avro.rules import Need, Pair, Schemas

# Nodes are looked up by identity: equal nodes of different places may be shared, and comparing them costs their size.
Key: TypeAlias = tuple[int, int]


def key_of(pair: Pair) -> Key:
    return id(pair[0]), id(pair[1])


class Resolution:
    """The pairs of two schemas decided so far; `assumed` are taken to hold, whatever they demand.

    `schemas` keeps the nodes alive, so that their identities stay unique.
    """

    __slots__ = ("_explored", "_refuted", "_waiting", "schemas")

    def __init__(self, schemas: Schemas, assumed: Iterable[Key] = ()) -> None:
        self.schemas = schemas
        self._explored = set(assumed)
        self._refuted: set[Key] = set()
        self._waiting: dict[Key, list[_Open]] = {}

    def holds(self, pair: Pair) -> bool:
        self._explore(pair)
        return key_of(pair) not in self._refuted

    def holds_any(self, pairs: Iterable[Pair]) -> bool:
        return any(map(self.holds, pairs))

    def _explore(self, root: Pair) -> None:
        pending = [root]
        while pending:
            pair = pending.pop()
            key = key_of(pair)
            if key in self._explored:
                continue
            self._explored.add(key)
            for demand in demands(*pair, self.schemas):
                if isinstance(demand, Fault) or not self._wait(key, demand):
                    self._refute(key)
                    break
                pending.extend(demand.options)

    def _wait(self, key: Key, need: Need) -> bool:
        """Note that `key` holds only while one option of `need` does; False if all of them are refuted already."""
        options = {key_of(option) for option in need.options} - self._refuted
        opened = _Open(key, len(options))
        for option in options:
            self._waiting.setdefault(option, []).append(opened)
        return bool(options)

    def _refute(self, key: Key) -> None:
        pending = [key]
        while pending:
            key = pending.pop()
            if key in self._refuted:
                continue
            self._refuted.add(key)
            for opened in self._waiting.pop(key, ()):
                opened.options -= 1
                if not opened.options:
                    pending.append(opened.pair)


class _Open:
    """A need that still has options: `pair` falls when the last of them does."""

    __slots__ = ("options", "pair")

    def __init__(self, pair: Key, options: int) -> None:
        self.pair = pair
        self.options = options
