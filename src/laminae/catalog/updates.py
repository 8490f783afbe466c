"""The writes of the catalog: a closed set of updates, committed together in one transaction or not at all.

An update carries the state it expects to find, so two writers never both succeed silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.catalog.changelog_updates import ForgetChanges, ForgetCompacted, ForgetSegments, PutCompacted
from laminae.catalog.model import EXACT_READING

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from laminae.catalog.model import Options, PendingState, SinkStatus, ViewStatus, WatermarkRecord, Written
    from laminae.schema.change import HistoryChange


@dataclass(frozen=True, slots=True)
class BindWriter:
    """Bind a schema id to its writer schema for a source, from the next epoch on. Earlier epochs keep their binding.

    Does not change `definition_seq`: an epoch with a record whose binding it does not have yet looks it up.
    """

    source_id: int
    schema_id: int
    registry_version: int | None
    applied: bool
    refusal: str | None
    avro: str
    columns: pa.Schema


@dataclass(frozen=True, slots=True)
class CreateSource:
    """A new source at version 1. Raises DuplicateObject if any object has the name.

    `writer` is the registry schema that its columns were taken from; its `source_id` is filled in by the commit.
    """

    name: str
    schema: pa.Schema
    next_column_id: int
    options: Options
    primary_key: tuple[int, ...]
    watermark: WatermarkRecord | None
    history: tuple[HistoryChange, ...]
    compatibility: str
    applied_at: datetime
    writer: BindWriter | None = None


@dataclass(frozen=True, slots=True)
class AddVersion:
    """The next version of a source. Raises ConcurrentChange unless the current one is `expected_version`.

    With `expected_seq`, the source's options, and so its compatibility mode, must also be those the change was judged
    by. Supersedes every pending change that is bound to an earlier version.
    """

    source_id: int
    source_name: str
    expected_version: int
    schema: pa.Schema
    next_column_id: int
    history: tuple[HistoryChange, ...]
    trigger: str
    compatibility: str
    forced: bool
    applied_at: datetime
    schema_id: int | None = None
    registry_version: int | None = None
    expected_seq: int | None = None


@dataclass(frozen=True, slots=True)
class SetSourceOptions:
    """Replace a source's options. Raises ConcurrentChange unless its `definition_seq` is the expected one.

    `unread`: also raises it if an epoch has read the source by now, since those records must be decoded alike again.
    """

    source_id: int
    source_name: str
    expected_seq: int
    options: Options
    unread: bool = False


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """Store the last verdict on a source. Does not change `definition_seq`: no plan depends on it."""

    source_id: int
    verdict: str


@dataclass(frozen=True, slots=True)
class SetSourceProblem:
    """The problem that keeps a source from running, None if there is none. Does not change `definition_seq`."""

    source_id: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class AddPending:
    """A change that waits for confirmation. The same (source, base version, fingerprint) is the same pending change.

    A new one raises ConcurrentChange unless the source is at `base_version`: it could never be confirmed.
    """

    source_id: int
    source_name: str
    base_version: int
    schema: pa.Schema
    fingerprint: str
    summary: str
    reasons: str
    trigger: str
    created_at: datetime
    schema_id: int | None = None
    registry_version: int | None = None


@dataclass(frozen=True, slots=True)
class ResolvePending:
    """Confirm or reject. Raises ChangeNotPending unless it is pending and bound to the source's current version.

    Must precede the AddVersion of the same commit, which would supersede it.
    """

    change_id: int
    source_id: int
    source_name: str
    state: PendingState
    resolved_at: datetime


@dataclass(frozen=True, slots=True)
class PutView:
    """Create a view, or replace the one with the id `replaces` (ConcurrentChange if that id is gone).

    The new view has a new id, so of two replacements of one view the second is refused. With `keeps_state` the replaced
    view is live, and the new one continues with its state as of the last epoch before this commit.
    """

    name: str
    query: str
    emit: str | None
    options: Options
    state: ViewStatus
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    created_at: datetime
    replaces: int | None = None
    written: Written = ()
    keeps_state: bool = False
    reading: int = EXACT_READING


@dataclass(frozen=True, slots=True)
class SetViewState:
    """Raises ConcurrentChange if the view was dropped or replaced, unless `if_there` allows that.

    `applied` is the epoch up to which a view that is not live has applied everything; None leaves it unchanged.
    """

    view_id: int
    state: ViewStatus
    problem: str | None = None
    applied: int | None = None
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class PutSink:
    name: str
    relation: str
    options: Options
    state: SinkStatus
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SetSinkProgress:
    """The progress of a sink. Never decreases; does not change `definition_seq`. ConcurrentChange if it was dropped."""

    sink_id: int
    progress: int
    state: SinkStatus
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DropObject:
    """Drop the object with this id. `kind` is source, view or sink. Raises ConcurrentChange if it is gone."""

    kind: str
    object_id: int
    name: str
    dropped_at: datetime


@dataclass(frozen=True, slots=True)
class CommitEpoch:
    """One epoch under the next global number, taken from a locked counter row: numbers become visible in order.

    If the same (source, batch) with the same offsets is already committed, its number is returned and nothing is
    written. With other offsets, raises CheckpointDiverged. Raises ConcurrentChange for a dropped source, and for the
    first epoch of a source that no longer has the `options` it was read with.
    """

    source_id: int
    source_name: str
    batch_id: int
    start_offsets: str
    end_offsets: str
    version: int
    rows: int
    committed_at: datetime
    segment: str | None = None
    dead_letters: int = 0
    dead_letter_segment: str | None = None
    replays: tuple[int, ...] = ()
    event_time: int | None = None
    options: Options | None = None
    waits_for: int | None = None


@dataclass(frozen=True, slots=True)
class NextEpoch:
    """A number for an epoch without a Spark batch: the backfill of a view, or a timer."""


@dataclass(frozen=True, slots=True)
class AdvanceOwner:
    """What the epoch of this commit did to a view or to the table of a source. Must follow the update that creates it.

    `manifests` are (operator, shard, manifest) of the changed state, `files` the changelog below the home. Raises
    ConcurrentChange unless the last epoch that changed the owner is `expected`. Nothing is written for a dropped owner.
    `bound` is set if the epoch emitted held-back changes up to that time; `late_files` hold late rows, `refused_files`
    rows on which an expression failed, `held_files` changes that are not emitted yet. `watermark` is the one that the
    epoch was computed under: the watermark of a view never falls below it.
    """

    owner_id: int
    name: str
    expected: int
    manifests: tuple[tuple[str, int, str], ...]
    files: tuple[str, ...]
    rows: int
    schema: pa.Schema
    anomalies: int = 0
    dropped: int = 0
    bound: int | None = None
    late: int = 0
    late_files: tuple[str, ...] = ()
    refused: int = 0
    refused_files: tuple[str, ...] = ()
    held_files: tuple[str, ...] = ()
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class AdoptState:
    """A view takes over the state of another view for these operators, in the epoch of this commit.

    Must follow the update that creates that epoch. Clears the view's `former`.
    """

    owner_id: int
    former_id: int
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetPosition:
    """The log position at which a version takes effect. Set once: a later value for the same version is ignored."""

    source_id: int
    version: int
    position: str


@dataclass(frozen=True, slots=True)
class PutSavepoint:
    """Pin the last committed epoch under a name. Raises DuplicateObject if the name is taken."""

    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DropSavepoint:
    """Raises UnknownObject if there is none."""

    name: str


@dataclass(frozen=True, slots=True)
class Rewind:
    """Undo every epoch after a savepoint, and their replays. Definitions stay; epoch numbers are never reused.

    Sinks are `rewinding` until they have retracted what they delivered of those epochs; a sink that started after the
    savepoint starts over. Raises UnknownObject if there is no such savepoint.
    """

    savepoint: str


@dataclass(frozen=True, slots=True)
class PutSetting:
    """`if_absent`: an existing value is kept."""

    name: str
    value: str
    if_absent: bool = False


CatalogUpdate = (
    BindWriter
    | CreateSource
    | AddVersion
    | SetSourceOptions
    | RecordVerdict
    | SetSourceProblem
    | AddPending
    | ResolvePending
    | PutView
    | SetViewState
    | PutSink
    | SetSinkProgress
    | DropObject
    | CommitEpoch
    | NextEpoch
    | AdvanceOwner
    | AdoptState
    | SetPosition
    | PutSavepoint
    | DropSavepoint
    | Rewind
    | ForgetSegments
    | ForgetChanges
    | PutCompacted
    | ForgetCompacted
    | PutSetting
)
