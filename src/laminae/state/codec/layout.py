"""The memory layout of UnsafeRow, UnsafeArrayData and UnsafeMapData, in words of eight bytes.

Each starts at a word boundary and its size is a multiple of a word, so a nested value can be copied unchanged.
"""

from __future__ import annotations

from laminae.errors import InvalidSchema
from laminae.state.leaves import Layout, layout_of
from laminae.state.types import Leaf, Type, physical

WORD = 8


def bitmap_words(bits: int) -> int:
    """The number of words of a bitmap with one bit per field or element."""
    return (bits + 63) // 64


def leaf_layout(kind: Type) -> Layout | None:
    """The layout of a leaf; None for a nested type, which is stored in the variable-length region of the row."""
    kind = physical(kind)
    if not isinstance(kind, Leaf):
        return None
    layout = layout_of(kind.name)
    if layout is None:
        raise InvalidSchema(path=kind.name, problem="there is no layout for this type")
    return layout


def is_word(kind: Type) -> bool:
    layout = leaf_layout(kind)
    return layout is not None and layout.is_word


def null_size(kind: Type) -> int | None:
    layout = leaf_layout(kind)
    return None if layout is None else layout.null_size
