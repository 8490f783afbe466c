"""Plans the compaction of a view's changelog, and which ranges and segments a SELECT reads.

For views whose rows are the sum of their changelog. A compacted range is read instead of its segments, never beyond the
requested epoch. No I/O beyond catalog reads.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from laminae.engine.views.impact import is_kept_alike
from laminae.schema.identity import IDS, column_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from laminae.catalog.model import AdvanceRecord, CompactedRecord
    from laminae.catalog.port import Catalog

LEAST_SEGMENTS = 32
"""Minimum number of consecutive segments to merge: below it, opening them costs less than a catalog entry is worth."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a changelog as it is read now: the segment of one epoch, or a compacted range."""

    first: int
    last: int
    rows: int
    files: tuple[str, ...]
    schema: pa.Schema
    is_segment: bool
    is_plain: bool = False

    @property
    def is_gone(self) -> bool:
        """Retention deleted its rows before they were compacted: nothing contains them any more."""
        return self.is_segment and self.rows > 0 and not self.files


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one merge may read; None means no limit."""

    rows: int | None = None
    files: int | None = None


def largest_ranges(compacted: Sequence[CompactedRecord], until: int | None = None) -> list[CompactedRecord]:
    """The ranges that end at or before `until` and are contained in no other. They do not overlap."""
    ranges: list[CompactedRecord] = []
    for record in sorted(compacted, key=lambda record: (record.first, -record.last)):
        if (until is None or record.last <= until) and not (ranges and record.first <= ranges[-1].last):
            ranges.append(record)
    return ranges


def pieces_of(catalog: Catalog, owner_id: int, until: int | None = None) -> list[Piece]:
    """The changelog of a view up to an epoch, oldest first, each change once. Epochs without rows are left out."""
    pieces: list[Piece] = []
    since = 0
    for record in largest_ranges(catalog.compacted(owner_id, until), until):
        pieces += map(segment_piece, _with_rows(catalog.advances(owner_id, since, record.first - 1)))
        pieces.append(
            Piece(record.first, record.last, record.rows, record.files, record.schema, False, record.is_plain)
        )
        since = record.last
    return [*pieces, *map(segment_piece, _with_rows(catalog.advances(owner_id, since, until)))]


def segment_piece(advance: AdvanceRecord) -> Piece:
    return Piece(advance.epoch, advance.epoch, advance.rows, advance.files, advance.schema, True)


def _with_rows(advances: Sequence[AdvanceRecord]) -> Iterator[AdvanceRecord]:
    return (advance for advance in advances if advance.rows or advance.files)


def next_merge(pieces: Sequence[Piece], limits: Limits = Limits(), due: int = 0) -> Sequence[Piece]:  # noqa: B008  # frozen
    """The adjacent pieces to merge next; empty when nothing needs compaction.

    Segments are merged when there are many, or when retention wants to delete one that ends at or before the epoch
    `due`. A range is merged with newer ones that together have at least as many rows: its size doubles each time, so a
    row is rewritten at most log2(n) times, and there are at most log2(n) ranges.
    """
    stretches = list(_stretches(pieces, limits))
    for number in reversed(range(len(stretches))):
        if merge := _in_stretch(stretches[number], limits, due, number == len(stretches) - 1):
            return merge
    return []


def _in_stretch(stretch: Sequence[Piece], limits: Limits, due: int, grows: bool) -> Sequence[Piece]:
    end = len(stretch)
    while end:
        start = end - 1
        if stretch[start].is_segment:
            first = start
            while first and stretch[first - 1].is_segment:
                first -= 1
            run = stretch[first:end]
            # Only the newest run of segments can still grow.
            is_newest = grows and end == len(stretch)
            if len(run) >= (LEAST_SEGMENTS if is_newest else 2) or run[0].last <= due:
                end = first + _within(run, limits)
                return stretch[_extended(stretch, first, end, limits) : end]
            if is_newest:
                end = first
                continue
        start = _extended(stretch, start, end, limits)
        if end - start > 1:
            return stretch[start:end]
        end = start
    return []


def _within(run: Sequence[Piece], limits: Limits) -> int:
    """How many of the first segments one merge may read: at least one."""
    rows = files = 0
    for count, piece in enumerate(run):
        rows, files = rows + piece.rows, files + len(piece.files)
        if count and (_exceeds(rows, limits.rows) or _exceeds(files, limits.files)):
            return count
    return len(run)


def _extended(stretch: Sequence[Piece], start: int, end: int, limits: Limits) -> int:
    """The start index of a merge that also includes older pieces which are no larger than everything after them."""
    rows = sum(piece.rows for piece in stretch[start:end])
    while start and stretch[start - 1].rows <= rows:
        rows += stretch[start - 1].rows
        if _exceeds(rows, limits.rows):
            break
        start -= 1
    return start


def _exceeds(value: int, limit: int | None) -> bool:
    return limit is not None and value > limit


def _stretches(pieces: Sequence[Piece], limits: Limits) -> Iterator[list[Piece]]:
    """Runs of adjacent pieces that can be merged: none is deleted or too large, and column types are compatible."""
    stretch: list[Piece] = []
    for (schema, _), alike in groupby(pieces, lambda entry: (entry.schema, (entry.schema.metadata or {}).get(IDS))):
        if stretch and not fits(stretch[-1].schema, schema):
            yield stretch
            stretch = []
        has_ids = IDS in (schema.metadata or {})
        for piece in alike:
            if has_ids and not piece.is_gone and not _exceeds(piece.rows, limits.rows):
                stretch.append(piece)
                continue
            if stretch:
                yield stretch
            stretch = []
    # The last stretch is the one that can still grow, so it is yielded even if it is empty.
    yield stretch


def fits(old: pa.Schema, new: pa.Schema) -> bool:
    """Whether rows of one schema can be rewritten as rows of the other without changing any value.

    Nested values are matched by field name when they are read, so the names have to be the same.
    """
    before = {identity: old.field(name).type for name, identity in column_ids(old).items()}
    now = {identity: new.field(name).type for name, identity in column_ids(new).items()}
    return all(is_kept_alike(before[identity], now[identity]) for identity in before.keys() & now.keys())


@dataclass(frozen=True, slots=True)
class Coverage:
    """The compacted ranges that are read now and as of given epochs. Segments outside the ranges are read as well."""

    ranges: tuple[tuple[int | None, tuple[CompactedRecord, ...]], ...]

    @classmethod
    def at(cls, compacted: Sequence[CompactedRecord], points: Iterable[int]) -> Coverage:
        """Coverage now and as of each of the epochs in `points`."""
        wanted = (None, *sorted(set(points)))
        return cls(tuple((point, tuple(largest_ranges(compacted, point))) for point in wanted))

    def reads_segment(self, epoch: int) -> bool:
        """Whether the segment of an epoch is needed to read the rows of the view."""
        return any((point is None or epoch <= point) and not _has(ranges, epoch) for point, ranges in self.ranges)

    def reads_range(self, record: CompactedRecord) -> bool:
        return any(
            (record.first, record.last) == (other.first, other.last) for _, records in self.ranges for other in records
        )


def _has(ranges: Sequence[CompactedRecord], epoch: int) -> bool:
    place = bisect_right(ranges, epoch, key=lambda record: record.first)
    return place > 0 and epoch <= ranges[place - 1].last
