"""Where things lie in an UnsafeRow, an UnsafeArrayData and an UnsafeMapData, in words of eight bytes.

Each begins at a whole word and is as long as whole words, so a nested one can be copied as it is.
"""

from __future__ import annotations

from laminae.errors import InvalidSchema
from laminae.state.leaves import Layout, layout_of
from laminae.state.types import Leaf, Type, physical

WORD = 8


def bitmap_words(bits: int) -> int:
    """Words of a bitmap with one bit for each field or element."""
    return (bits + 63) // 64


def leaf_layout(kind: Type) -> Layout | None:
    """The layout of a leaf; None for a nested type, which lies behind the row."""
    kind = physical(kind)
    if not isinstance(kind, Leaf):
        return None
    found = layout_of(kind.name)
    if found is None:
        raise InvalidSchema(path=kind.name, problem="there is no layout for this type")
    return found


def is_word(kind: Type) -> bool:
    layout = leaf_layout(kind)
    return layout is not None and layout.is_word


def null_size(kind: Type) -> int | None:
    layout = leaf_layout(kind)
    return None if layout is None else layout.null_size
