"""The content of the catalog as values. Times are aware UTC datetimes, schemas are `pyarrow.Schema` with column ids.

A source's `id` identifies its incarnation: DROP and CREATE under the same name give a new id.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

Options = tuple[tuple[str, str], ...]
"""Sorted (name, value) pairs. Secrets are references such as ${env:NAME}, never values."""
Written = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""For each relation that a view reads, the (id, name) of its columns when the view was defined."""


@dataclass(frozen=True, slots=True)
class WatermarkRecord:
    """Event time is the column with this id, `delay_us` microseconds behind."""

    column_id: int
    delay_us: int


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source as it is now. Key and watermark refer to columns by id, so a rename does not affect them."""

    id: int
    name: str
    version: int
    schema: pa.Schema
    next_column_id: int
    options: Options
    primary_key: tuple[int, ...]
    watermark: WatermarkRecord | None
    last_verdict: str | None
    created_at: datetime
    definition_seq: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One schema version. `position` is where in the log it takes effect, set by the first epoch planned with it."""

    source_id: int
    version: int
    schema: pa.Schema
    trigger: str
    compatibility: str
    forced: bool
    schema_id: int | None
    registry_version: int | None
    position: str | None
    applied_at: datetime


class HistoryRow(NamedTuple):
    """One change of one version: a row of laminar_catalog.schema_history."""

    source_name: str
    version: int
    change_type: str
    column_name: str
    old_type: str | None
    new_type: str | None
    old_name: str | None
    default: str | None
    trigger: str
    schema_id: int | None
    registry_version: int | None
    compatibility: str
    forced: bool
    applied_at: datetime


class PendingState(StrEnum):
    PENDING = "pending"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A change that waits for confirmation, bound to its diff and to the version it was found against."""

    id: int
    source_id: int
    source_name: str
    base_version: int
    schema: pa.Schema
    fingerprint: str
    summary: str
    reasons: str
    trigger: str
    schema_id: int | None
    registry_version: int | None
    state: PendingState
    created_at: datetime
    resolved_at: datetime | None


class QueryStatus(StrEnum):
    """Of the streaming query of a source. `FAILING`: its last epoch failed, as the catalog knows without a driver."""

    STOPPED = "stopped"
    RUNNING = "running"
    WAITING = "waiting"
    FAILING = "failing"
    FAILED = "failed"
    ENDED = "ended"


class ViewStatus(StrEnum):
    """A view that reads one that is not live waits for it."""

    CREATING = "creating"
    LIVE = "live"
    WAITING = "waiting"
    FAILED = "failed"


class SinkStatus(StrEnum):
    """`REWINDING`: it must undo the delivery of epochs that a restored savepoint has undone."""

    CREATING = "creating"
    REWINDING = "rewinding"
    LIVE = "live"
    FAILING = "failing"


STARTING_SINKS = (SinkStatus.CREATING, SinkStatus.REWINDING)
"""States in which the progress of a sink does not say yet which epochs it still needs."""
TROUBLED_STATES: frozenset[str] = frozenset(
    {QueryStatus.FAILING, QueryStatus.FAILED, ViewStatus.FAILED, SinkStatus.FAILING}
)
"""States of sources, views and sinks that somebody has to look at."""

EXACT_READING = 2
"""The query of a view is parsed as Spark does; 1: by sqlglot's dialect, as when older views were created."""


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """A materialized view. `reads`: (relation, column ids or () for all).

    Unless live, it has applied everything up to the epoch `applied`. `former` is the replaced view whose state it
    continues with, until it has taken that over. `keeps_held`: the changes it holds back are in files of its epochs.
    """

    id: int
    name: str
    query: str
    emit: str | None
    options: Options
    state: ViewStatus
    problem: str | None
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    created_at: datetime
    definition_seq: int
    applied: int = 0
    written: Written = ()
    former: int | None = None
    keeps_held: bool = False
    reading: int = EXACT_READING


@dataclass(frozen=True, slots=True)
class AdvanceRecord:
    """The changelog of one epoch for a view or the table of a source: files below the home, in this schema.

    `held_files` are changes that the view has not emitted yet.
    """

    epoch: int
    files: tuple[str, ...]
    rows: int
    anomalies: int
    dropped: int
    bound: int | None
    late: int
    late_files: tuple[str, ...]
    schema: pa.Schema
    refused: int = 0
    refused_files: tuple[str, ...] = ()
    held_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactedRecord:
    """The sum of a view's changelog from the epoch `first` to the epoch `last`, both included.

    Its files have the columns of the view and `_weight`; `is_plain`: every weight is 1. A range that was merged into a
    larger one stays until it is collected, so of two overlapping ranges one contains the other.
    """

    first: int
    last: int
    files: tuple[str, ...]
    rows: int
    is_plain: bool
    created_at: datetime
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class ManifestRecord:
    """The state of one operator on one shard since an epoch, as the text of its manifest."""

    operator: str
    shard: int
    epoch: int
    manifest: str


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """A sink over one relation. `progress` is the last epoch it has delivered, `began` the one it started with."""

    id: int
    name: str
    relation: str
    options: Options
    state: SinkStatus
    problem: str | None
    progress: int
    created_at: datetime
    definition_seq: int
    began: int | None = None


READING = 2
"""The current rules for decoding values. 1: dates and times by Spark's own casts, as in version 0.1."""


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """A committed epoch: `epoch` is the global number, (`source_id`, `batch_id`) the offset range of one source.

    A replay of dead letters has a negative batch id and no range. `segment` and `dead_letter_segment` are directories
    below the home with its rows and with the records that could not be decoded; `replayed_by` is the epoch that
    replayed those. `waits_for` is the change that some of them wait for. `reading` are the rules that decoded its
    values.
    """

    epoch: int
    source_id: int
    batch_id: int
    start_offsets: str
    end_offsets: str
    version: int
    rows: int
    committed_at: datetime
    segment: str | None = None
    dead_letters: int = 0
    dead_letter_segment: str | None = None
    replayed_by: int | None = None
    waits_for: int | None = None
    reading: int = READING

    @property
    def is_replay(self) -> bool:
        return self.batch_id < 0


@dataclass(frozen=True, slots=True)
class WriterRecord:
    """The binding of a registry schema id for the records of a source, for its epochs after `after_epoch`.

    `columns` are the writer's, with the ids of the matching source columns. `applied`: the source has applied the
    changes that this schema implies. `refusal` is why every record with this id is a dead letter.
    """

    source_id: int
    schema_id: int
    after_epoch: int
    registry_version: int | None
    applied: bool
    refusal: str | None
    avro: str
    columns: pa.Schema


@dataclass(frozen=True, slots=True)
class SavepointRecord:
    """A pinned epoch, and with it every source's position in its log, which follows from the epochs up to it."""

    name: str
    epoch: int
    created_at: datetime


class EpochTotals(NamedTuple):
    """Sums over every committed epoch of a source."""

    epochs: int
    rows: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a home's pipelines. The fencing `token` grows with every holder; each commit asserts it."""

    holder: str
    host: str
    pid: int
    token: int
    expires_at: datetime
