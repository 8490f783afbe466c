"""Arrays and maps whose elements change: headers are copied, each element is converted and gets a new offset.

The elements of all arrays of a batch form one list of pieces, so an array costs no more than its elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laminae.errors import InvalidRowBytes
from laminae.state.codec.layout import WORD
from laminae.state.codec.pieces import Pieces, copy, exclusive_sum, slots_of

if TYPE_CHECKING:
    from collections.abc import Callable


def elements_converter(inside: Callable[[Pieces], Pieces]) -> Callable[[Pieces], Pieces]:
    """Arrays: a word with the count, a bitmap, a slot for each element, then the elements."""

    def convert(arrays: Pieces) -> Pieces:
        counts = arrays.words[arrays.starts].astype(np.int64)
        heads = 1 + (counts + 63) // 64
        if np.any(counts < 0) or np.any((heads + counts) * WORD > arrays.sizes):
            raise InvalidRowBytes(problem="an array has more elements than bytes")
        before = exclusive_sum(counts)
        owner = np.repeat(np.arange(len(counts)), counts)
        index = np.arange(before[-1]) - before[:-1][owner]
        bitmap = arrays.words[arrays.starts[owner] + 1 + index // 64]
        live = (bitmap >> (index % 64).astype(np.uint64)) & np.uint64(1) == 0
        slots = arrays.words[arrays.starts[owner] + heads[owner] + index]
        containers = Pieces(arrays.words, arrays.starts[owner], arrays.sizes[owner])
        converted = inside(containers.at(slots, live))
        lengths = np.zeros(len(owner), np.int64)
        lengths[live] = converted.lengths
        sizes = np.zeros(len(owner), np.int64)
        sizes[live] = converted.sizes
        running = exclusive_sum(lengths)
        # The offset of an element in its array: after the slots and after the preceding elements.
        inner = (heads + counts)[owner] + running[:-1] - running[before[:-1]][owner]
        totals = heads + counts + running[before[1:]] - running[before[:-1]]
        places = exclusive_sum(totals)
        starts = places[:-1]
        words = np.zeros(places[-1], np.uint64)
        copy(words, starts, arrays.words, arrays.starts, heads)
        words[starts[owner] + heads[owner] + index] = np.where(live, slots_of(inner * WORD, sizes), np.uint64(0))
        copy(words, (starts[owner] + inner)[live], converted.words, converted.starts, converted.lengths)
        return Pieces(words, starts, totals * WORD)

    return convert


def values_converter(values: Callable[[Pieces], Pieces]) -> Callable[[Pieces], Pieces]:
    """Maps: a word with the size of the keys in bytes, the array of keys, the array of values."""

    def convert(maps: Pieces) -> Pieces:
        key_sizes = maps.words[maps.starts].astype(np.int64)
        if np.any(key_sizes % WORD) or np.any(key_sizes < 0) or np.any(key_sizes + WORD > maps.sizes):
            raise InvalidRowBytes(problem="the keys of a map do not fit into it")
        heads = 1 + key_sizes // WORD
        converted = values(Pieces(maps.words, maps.starts + heads, maps.sizes - heads * WORD))
        totals = heads + converted.lengths
        places = exclusive_sum(totals)
        starts = places[:-1]
        words = np.zeros(places[-1], np.uint64)
        copy(words, starts, maps.words, maps.starts, heads)
        copy(words, starts + heads, converted.words, converted.starts, converted.lengths)
        return Pieces(words, starts, totals * WORD)

    return convert
