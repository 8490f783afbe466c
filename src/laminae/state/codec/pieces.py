"""Many byte strings in one buffer of words, as the batch conversion sees them: rows, nested rows, arrays, texts.

Everything is done for all of them at once, with numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laminae.errors import InvalidRowBytes
from laminae.state.codec.layout import WORD

Words: TypeAlias = npt.NDArray[np.uint64]
Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

OFFSET_BITS = np.uint64(32)
SIZE_MASK = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Pieces:
    """`starts` are counted in words of the buffer, `sizes` in bytes: texts need not fill their last word."""

    words: Words
    starts: Numbers
    sizes: Numbers

    @property
    def lengths(self) -> Numbers:
        """Words that each takes."""
        return (self.sizes + (WORD - 1)) // WORD

    def at(self, slots: Words, live: Flags) -> Pieces:
        """The parts that these slots point to, one in each piece that is `live`."""
        pointers = slots[live]
        offsets = (pointers >> OFFSET_BITS).astype(np.int64)
        sizes = (pointers & SIZE_MASK).astype(np.int64)
        if np.any(offsets % WORD) or np.any(offsets + sizes > self.sizes[live]):
            raise InvalidRowBytes(problem="a field points outside its row")
        return Pieces(self.words, self.starts[live] + offsets // WORD, sizes)


def slots_of(offsets: Numbers, sizes: Numbers) -> Words:
    """What a row holds for a part behind it: the offset in the high half, the size in the low one."""
    return (offsets.astype(np.uint64) << OFFSET_BITS) | sizes.astype(np.uint64)


def exclusive_sum(lengths: Numbers) -> Numbers:
    """Where each begins when they lie one behind the other; the last number is the end of all."""
    places = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=places[1:])
    return places


def copy(target: Words, places: Numbers, words: Words, starts: Numbers, lengths: Numbers) -> None:
    """Copy `lengths` words from each of `starts` to each of `places`."""
    if not len(lengths):
        return
    first = int(lengths[0])
    if first <= 4 and bool((lengths == first).all()):
        for step in range(first):
            target[places + step] = words[starts + step]
        return
    before = exclusive_sum(lengths)
    ramp = np.arange(before[-1])
    target[np.repeat(places - before[:-1], lengths) + ramp] = words[np.repeat(starts - before[:-1], lengths) + ramp]


def pieces_of(rows: pa.Array) -> Pieces:
    """The rows of a binary array without NULL."""
    _, offsets_buffer, data = rows.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[rows.offset : rows.offset + len(rows) + 1].astype(np.int64)
    first, end = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    sizes = np.diff(offsets)
    if np.any(sizes % WORD):
        raise InvalidRowBytes(problem="the length of a row is no multiple of eight bytes")
    body = np.frombuffer(data, np.uint8)[first:end] if data is not None else np.zeros(0, np.uint8)
    return Pieces(body.view(np.uint64), (offsets[:-1] - first) // WORD, sizes)


def rows_of(pieces: Pieces) -> pa.Array:
    """Pieces that lie one behind the other as a binary array."""
    offsets = exclusive_sum(pieces.sizes)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise InvalidRowBytes(problem="a batch of rows is larger than 2 GB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(pieces.words)]
    return pa.Array.from_buffers(pa.binary(), len(pieces.sizes), buffers)
