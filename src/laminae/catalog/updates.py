"""What can be written to the catalog: a closed set of updates, committed together in one transaction or not at all.

An update carries what it expects to find, so two writers never both win silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from laminae.catalog.model import Options, WatermarkRecord, Written
    from laminae.schema.describe import HistoryChange


@dataclass(frozen=True, slots=True)
class BindWriter:
    """What a schema id stands for in the records of a source, from the next epoch on. Epochs before it keep theirs.

    Does not move `definition_seq`: a record whose id is bound and not known is looked up by the epoch that has it.
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
    """A new source at version 1. Fails with DuplicateObject when the name is taken by any object.

    `writer` is the schema of a registry that its columns were taken from; its `source_id` is given here.
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
    """The next version of a source. Fails with ConcurrentChange unless the current one is `expected_version`.

    With `expected_seq` the source's options, and so its mode, must be those the change was judged by too.
    Supersedes every pending change that is bound to an earlier version.
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
    """Replace a source's options. Fails with ConcurrentChange unless its `definition_seq` is the expected one.

    `unread`: also when an epoch has read the source by now, as records that were read must be read alike again.
    """

    source_id: int
    source_name: str
    expected_seq: int
    options: Options
    unread: bool = False


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """Keep the last verdict on a source. Does not move `definition_seq`: no plan depends on it."""

    source_id: int
    verdict: str


@dataclass(frozen=True, slots=True)
class SetSourceProblem:
    """What keeps a source from running, None: nothing does. Does not move `definition_seq`."""

    source_id: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class AddPending:
    """A change that waits. The same (source, base version, fingerprint) again is the same pending change.

    A new one fails with ConcurrentChange unless the source is at `base_version`: it could never be confirmed.
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
    """Confirm or reject. Fails with ChangeNotPending unless it is pending and bound to the source's current version.

    It stands before the AddVersion of the same commit, which would supersede it.
    """

    change_id: int
    source_id: int
    source_name: str
    state: str
    resolved_at: datetime


@dataclass(frozen=True, slots=True)
class PutView:
    """Create a view, or replace the one with `replaces` as its id (ConcurrentChange when that id is gone).

    The new view has an id of its own, so of two replacements of one view the second is refused. With `keeps_state` the
    one that is replaced is live, and the new one goes on with its state as of the last epoch before this commit.
    """

    name: str
    query: str
    emit: str | None
    options: Options
    state: str
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    created_at: datetime
    replaces: int | None = None
    written: Written = ()
    keeps_state: bool = False


@dataclass(frozen=True, slots=True)
class SetViewState:
    """Fails with ConcurrentChange when the view was dropped or replaced, unless `if_there` says that it may have been.

    `applied` is the epoch up to which a view that is not live has everything; None leaves it as it is.
    """

    view_id: int
    state: str
    problem: str | None = None
    applied: int | None = None
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class PutSink:
    name: str
    relation: str
    options: Options
    state: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SetSinkProgress:
    """Where a sink is. Never moves backwards; does not move `definition_seq`. ConcurrentChange when it was dropped."""

    sink_id: int
    progress: int
    state: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DropObject:
    """Drop the object with this id. `kind` is source, view or sink. Fails with ConcurrentChange when it is gone."""

    kind: str
    object_id: int
    name: str
    dropped_at: datetime


@dataclass(frozen=True, slots=True)
class CommitEpoch:
    """One epoch under the next global number, taken from a locked counter row: numbers become visible in order.

    The same (source, batch) with the same offsets is already committed: its number is returned and nothing written.
    With other offsets it fails with CheckpointDiverged. A dropped source commits no new epoch: ConcurrentChange. Nor
    does one that this is the first of, and that has no longer the `options` it was read with.
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


@dataclass(frozen=True, slots=True)
class NextEpoch:
    """A number for an epoch that has no Spark batch behind it: the backfill of a view, a tick of the clock."""


@dataclass(frozen=True, slots=True)
class AdvanceOwner:
    """What the epoch of this commit did to a view, or to the table of a source. It stands behind that epoch.

    `manifests` are (operator, shard, manifest) of the state that changed, `files` the changelog below the home. Fails
    with ConcurrentChange unless the last epoch that did something to it is `expected`. A dropped owner gets nothing.
    `bound` is there when the epoch emitted what had been held back up to that time; `late_files` hold rows that came
    too late for it, `refused_files` rows on which an expression of it failed.
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


@dataclass(frozen=True, slots=True)
class AdoptState:
    """A view takes over the state that another had, for these operators, in the epoch of this commit.

    It stands behind that epoch, and has no `former` any more.
    """

    owner_id: int
    former_id: int
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetPosition:
    """Where in the log a version begins to hold. Set once: a later value for the same version is ignored."""

    source_id: int
    version: int
    position: str


@dataclass(frozen=True, slots=True)
class PutSavepoint:
    """Pin the last committed epoch under a name. DuplicateObject when the name is taken."""

    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DropSavepoint:
    """UnknownObject when there is none."""

    name: str


@dataclass(frozen=True, slots=True)
class Rewind:
    """Undo every epoch after a savepoint's, and what they replayed. Definitions stay; no number is given out again.

    Sinks are `rewinding` until they have taken back what they delivered of them; one that began after the savepoint
    begins anew. UnknownObject when there is no such savepoint.
    """

    savepoint: str


@dataclass(frozen=True, slots=True)
class ForgetSegments:
    """The rows (or the dead letters) of these epochs are no longer kept; the epochs and their counts are."""

    epochs: tuple[int, ...]
    dead_letters: bool = False


@dataclass(frozen=True, slots=True)
class ForgetChanges:
    """The changelog of these epochs of a view, or of a source's table, is no longer kept; their counts are.

    Nor are the rows that came too late for it, or failed in it, in those of the other two.
    """

    owner_id: int
    epochs: tuple[int, ...]
    late: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PutSetting:
    name: str
    value: str


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
    | PutSetting
)
