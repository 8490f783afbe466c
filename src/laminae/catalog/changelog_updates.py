"""Updates that end the life of changes: segments, changelogs and merged ranges that are no longer kept.

They are part of `laminae.catalog.updates.CatalogUpdate` and are committed like every other update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ForgetSegments:
    """The rows (or the dead letters) of these epochs are no longer kept; the epochs and their counts are."""

    epochs: tuple[int, ...]
    dead_letters: bool = False


@dataclass(frozen=True, slots=True)
class ForgetChanges:
    """The changelog of these epochs of a view, or of a source's table, is no longer kept; their counts are.

    `late`, `refused` and `held` are the epochs whose late rows, failed rows and held-back changes are no longer kept.
    """

    owner_id: int
    epochs: tuple[int, ...]
    late: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    held: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PutCompacted:
    """The sum of a view's changelog from the epoch `first` to the epoch `last`. Nothing is written for a dropped view.

    Raises ConcurrentChange if one of its epochs was undone, if one of the ranges it was merged from (`inputs`) is gone,
    or if another merge has written the same or an overlapping range. Does not change `definition_seq`.
    """

    owner_id: int
    name: str
    first: int
    last: int
    inputs: tuple[tuple[int, int], ...]
    files: tuple[str, ...]
    rows: int
    is_plain: bool
    schema: pa.Schema
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ForgetCompacted:
    """These ranges (first and last epoch) of a view are no longer kept: larger ones contain their rows."""

    owner_id: int
    ranges: tuple[tuple[int, int], ...]
