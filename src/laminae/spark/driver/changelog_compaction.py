"""Compact the changelogs of views that have no other state: small merges while the driver runs, all in a collection.

Files are written first, then referenced by one commit; a crash in between leaves only unreferenced files.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog.changelog_updates import PutCompacted
from laminae.engine import faults
from laminae.engine.evolution.added_columns import added_defaults
from laminae.engine.retention.changelog_compaction import LEAST_SEGMENTS, Limits, next_merge, pieces_of
from laminae.engine.views.resolution import view_plan
from laminae.engine.views.row_source import RowsFrom, rows_from
from laminae.errors import ConcurrentChange, LaminaeError
from laminae.spark.views.reading.changelog_table import OWN
from laminae.spark.views.reading.merge import merge, merged_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.retention.changelog_compaction import Piece
    from laminae.spark.driver.storage import Storage

LOG = logging.getLogger(__name__)
COMPACTED = "compacted"
"""The subdirectory of a view's directory that holds merged ranges."""
# Delivery to sinks waits for a merge: 500,000 rows of three columns took 1.7 s to copy and 3.9 s to sum on a busy
# machine, 2,000 files of one row 1.9 s.
SMALL = Limits(rows=500_000, files=2_000)


def summed_views(catalog: Catalog) -> list[ViewRecord]:
    """The views whose rows are the sum of their changelog. A view that can no longer be planned is skipped."""
    sources, views = catalog.sources(), catalog.views()
    summed: list[ViewRecord] = []
    for view in views:
        try:
            if rows_from(view, sources, views) is RowsFrom.CHANGELOG:
                summed.append(view)
        except LaminaeError as problem:
            LOG.info("the changelog of %s is not merged: %s", view.name, problem)
    return summed


@dataclass(frozen=True, slots=True)
class Merger:
    """Merges ranges of changelogs and commits them."""

    catalog: Catalog
    storage: Storage
    clock: Callable[[], datetime]
    lease_token: int | None = None

    def merge_all(self, view: ViewRecord, due: int = 0) -> None:
        """Merge until nothing is left to merge. Segments up to epoch `due` are merged, so that they can be removed."""
        while (pieces := next_merge(pieces_of(self.catalog, view.id), due=due)) and self.attempt(view, pieces):
            pass

    def attempt(self, view: ViewRecord, pieces: Sequence[Piece]) -> bool:
        """Merge and return whether it succeeded. Compaction is an optimisation, so a failure is only logged.

        If a segment cannot be read, queries that read it raise the same error.
        """
        try:
            self.merge(view, pieces)
        except (ConcurrentChange, OSError, pa.ArrowException) as problem:
            LOG.warning("the changelog of %s is not merged: %s", view.name, problem)
            return False
        return True

    def merge(self, view: ViewRecord, pieces: Sequence[Piece]) -> None:
        faults.reach("merge planned")
        schema = merged_schema(pieces[-1].schema, OWN)
        place = self.storage.new_segment(view.id, COMPACTED)
        try:
            merged = merge(self.storage.home, pieces, schema, self._fills(view), self.storage.home / place)
            if merged.files:
                self.storage.sync(place)
        except (OSError, pa.ArrowException):
            # The disk may be full.
            self.storage.remove(place)
            raise
        faults.reach("merge written")
        update = PutCompacted(
            owner_id=view.id,
            name=view.name,
            first=pieces[0].first,
            last=pieces[-1].last,
            inputs=tuple((piece.first, piece.last) for piece in pieces if not piece.is_segment),
            files=tuple(f"{place}/{name}" for name in merged.files),
            rows=merged.rows,
            is_plain=merged.is_plain,
            schema=schema,
            created_at=self.clock(),
        )
        self.catalog.commit([update], lease_token=self.lease_token)
        faults.reach("merge committed")

    def _fills(self, view: ViewRecord) -> dict[str, pa.Scalar]:
        """Values of added columns in older rows, by column id. They never change, so merged files may contain them."""
        sources, views = self.catalog.sources(), self.catalog.views()
        plan = view_plan(view.name, view.query, sources, views, view.written, view.reading)
        ids = dict(zip(plan.columns, plan.ids, strict=True))
        return {ids[name]: value for name, value in added_defaults(view, sources, views).items()}


@dataclass(slots=True)
class Compactor:
    """Compaction while the driver runs: at most one small merge per view and round."""

    merger: Merger
    _looked: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pump(self) -> None:
        with self._lock:
            last = self.merger.catalog.last_epoch()
            if self._looked is not None and self._looked <= last < self._looked + LEAST_SEGMENTS:
                return
            merged = [view for view in summed_views(self.merger.catalog) if self._merge_small(view)]
            # After a merge there may be more to do; otherwise nothing is due for the next LEAST_SEGMENTS epochs.
            if not merged:
                self._looked = last

    def _merge_small(self, view: ViewRecord) -> bool:
        pieces = next_merge(pieces_of(self.merger.catalog, view.id), SMALL)
        return bool(pieces) and self.merger.attempt(view, pieces)
