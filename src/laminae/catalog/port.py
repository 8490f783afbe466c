"""The catalog interface: reads of values, one `commit` for every write, and the lease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from laminae.catalog.model import (
        AdvanceRecord,
        CompactedRecord,
        EpochRecord,
        EpochTotals,
        HistoryRow,
        Lease,
        ManifestRecord,
        PendingRecord,
        SavepointRecord,
        SinkRecord,
        SourceRecord,
        VersionRecord,
        ViewRecord,
        WriterRecord,
    )
    from laminae.catalog.updates import CatalogUpdate


@dataclass(frozen=True, slots=True)
class Committed:
    """`definition_seq` after the commit, and for each update the id or number it was assigned (0 if it has none)."""

    definition_seq: int
    ids: tuple[int, ...]


class Catalog(Protocol):
    """One durable store. Every method is one transaction; thread-safe."""

    @property
    def location(self) -> str:
        """The location for error messages, never with a password."""
        ...

    def commit(
        self, updates: Sequence[CatalogUpdate], *, lease_token: int | None = None, expected_seq: int | None = None
    ) -> Committed:
        """Apply all updates in one transaction, in order; if one fails, raise and change nothing.

        With `lease_token`, raises LeaseLost unless that is still the current token. With `expected_seq`, raises
        ConcurrentChange if any definition has changed since: for decisions based on several objects.
        """
        ...

    def definition_seq(self) -> int: ...

    def source(self, name: str) -> SourceRecord | None: ...

    def sources(self) -> tuple[SourceRecord, ...]: ...

    def source_dropped_at(self, name: str) -> datetime | None:
        """When the last source of this name was dropped."""
        ...

    def versions(self, source_id: int) -> tuple[VersionRecord, ...]:
        """Oldest first."""
        ...

    def history(self, source_name: str | None = None) -> tuple[HistoryRow, ...]:
        """By source name, then version, then the canonical order of the diff. Live sources only."""
        ...

    def pending(self, source_id: int | None = None) -> tuple[PendingRecord, ...]:
        """Every pending change ever recorded, with its state, oldest first."""
        ...

    def view(self, name: str) -> ViewRecord | None: ...

    def views(self) -> tuple[ViewRecord, ...]: ...

    def sink(self, name: str) -> SinkRecord | None: ...

    def sinks(self) -> tuple[SinkRecord, ...]: ...

    def epochs(self, source_id: int, since: int = 0) -> tuple[EpochRecord, ...]:
        """Epochs with a number above `since`, in order."""
        ...

    def last_epoch(self) -> int: ...

    def batch(self, source_id: int, batch_id: int) -> EpochRecord | None:
        """The committed epoch of this Spark batch."""
        ...

    def last_batch(self, source_id: int) -> EpochRecord | None:
        """The newest committed epoch that belongs to a Spark batch (not a replay)."""
        ...

    def dead_letter_epochs(self, source_id: int) -> tuple[EpochRecord, ...]:
        """Epochs whose dead letters have not been replayed."""
        ...

    def epoch_totals(self, source_id: int) -> EpochTotals: ...

    def advances(self, owner_id: int, since: int = 0, until: int | None = None) -> tuple[AdvanceRecord, ...]:
        """The changelog of a view or of a source's table, above `since` and up to `until`, in order."""
        ...

    def compacted(self, owner_id: int, until: int | None = None) -> tuple[CompactedRecord, ...]:
        """The compacted ranges of a view's changelog that end at or before `until`, ordered by first epoch."""
        ...

    def last_advance(self, owner_id: int) -> int:
        """The last epoch that changed it, 0 if none did."""
        ...

    def replaced(self, view_id: int) -> ViewRecord | None:
        """The view that this one replaced by CREATE OR REPLACE, as it was; None if there was none."""
        ...

    def refused(self, owner_id: int) -> int:
        """How many rows of a view are dead letters because one of its expressions failed on them."""
        ...

    def last_emission(self, owner_id: int, until: int | None = None) -> tuple[int, int] | None:
        """The last epoch that emitted changes which a view had held back, and the time up to which it did."""
        ...

    def last_watermark(self, owner_id: int) -> int | None:
        """The latest watermark under which an epoch of a view was computed, in microseconds."""
        ...

    def event_time(self, source_id: int) -> int | None:
        """The latest event time of a source, in microseconds."""
        ...

    def manifests(self, owner_id: int, until: int | None = None) -> tuple[ManifestRecord, ...]:
        """Its state after an epoch (default: the last one), by operator and shard."""
        ...

    def writers(self, source_id: int) -> tuple[WriterRecord, ...]:
        """The bindings of schema ids of a source's records, in the order in which they were bound."""
        ...

    def savepoints(self) -> tuple[SavepointRecord, ...]:
        """By epoch, oldest first."""
        ...

    def dropped_sources(self) -> tuple[int, ...]:
        """The ids of dropped sources."""
        ...

    def settings(self) -> dict[str, str]: ...

    def acquire_lease(
        self,
        holder: str,
        host: str,
        pid: int,
        now: datetime,
        ttl: timedelta,
        *,
        dead: bool,
        seen_token: int | None = None,
    ) -> Lease:
        """Take the lease with a new token. Raises LeaseHeld if it is still held, unless its holder is `dead`.

        `seen_token` is the token of the holder found dead: one that took over in between is alive and keeps it.
        """
        ...

    def renew_lease(self, token: int, now: datetime, ttl: timedelta) -> Lease:
        """Raises LeaseLost if another holder has a later token, or the lease was released."""
        ...

    def release_lease(self, token: int) -> None:
        """Free the lease for the next holder. Does nothing if it was taken over."""
        ...

    def lease(self) -> Lease | None: ...

    def close(self) -> None: ...
