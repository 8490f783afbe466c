"""What the catalog holds, as values. Times are aware UTC datetimes, schemas are `pyarrow.Schema` with column ids.

A source's `id` is its incarnation: DROP and CREATE under the same name give a new one.
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
"""For each relation that a view reads the (id, name) of its columns when the view was written."""


@dataclass(frozen=True, slots=True)
class WatermarkRecord:
    """Event time is the column with this id, `delay_us` microseconds behind."""

    column_id: int
    delay_us: int


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source as it is now. Keys and watermark name columns by id, so a rename does not touch them."""

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
    """One schema version. `position` is where in the log it begins to hold, set by the first epoch planned with it."""

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
    """A change that waits for a person, bound to the version it was found against and to its diff."""

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


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """A materialized view. `state`: creating, live or failed. `reads`: (relation name, column ids or () for all).

    Unless it is live, it has everything up to the epoch `applied`. `former` is the view that it replaced and whose
    state it goes on with, until it has taken that over.
    """

    id: int
    name: str
    query: str
    emit: str | None
    options: Options
    state: str
    problem: str | None
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    created_at: datetime
    definition_seq: int
    applied: int = 0
    written: Written = ()
    former: int | None = None


@dataclass(frozen=True, slots=True)
class AdvanceRecord:
    """The changelog that an epoch gave a view or the table of a source: files below the home, in this schema."""

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


@dataclass(frozen=True, slots=True)
class ManifestRecord:
    """The state of one operator on one shard since an epoch, as the text of its manifest."""

    operator: str
    shard: int
    epoch: int
    manifest: str


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """A sink over one relation. `progress` is the last epoch it has delivered, `began` the one it began with."""

    id: int
    name: str
    relation: str
    options: Options
    state: str
    problem: str | None
    progress: int
    created_at: datetime
    definition_seq: int
    began: int | None = None


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """A committed epoch: `epoch` is the global number, (`source_id`, `batch_id`) the range of one source's log.

    A replay of dead letters has a negative batch id and no range. `segment` and `dead_letter_segment` are directories
    below the home with its rows and with the records that could not be decoded; `replayed_by` is the epoch that put
    those through again.
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

    @property
    def is_replay(self) -> bool:
        return self.batch_id < 0


@dataclass(frozen=True, slots=True)
class WriterRecord:
    """What a schema id of a registry stands for in the records of a source, for its epochs behind `after_epoch`.

    `columns` are the writer's, with the ids of the source's columns that they are. `applied`: the source has what this
    schema asked of it. A `refusal` is why every record of this id is a dead letter.
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
    """A pinned epoch: with it every source's place in its log, which the epochs up to it tell."""

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
    """The right to run a home's pipelines. `token` grows with every holder; each commit asserts it."""

    holder: str
    host: str
    pid: int
    token: int
    expires_at: datetime
