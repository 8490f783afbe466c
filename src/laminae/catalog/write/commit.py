"""One commit: dispatches every update of the closed set to the function that writes it, under one set of counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from laminae.catalog.changelog_updates import ForgetChanges, ForgetCompacted, ForgetSegments, PutCompacted
from laminae.catalog.leases import assert_token
from laminae.catalog.port import Committed
from laminae.catalog.updates import (
    AddPending,
    AddVersion,
    AdoptState,
    AdvanceOwner,
    BindWriter,
    CatalogUpdate,
    CommitEpoch,
    CreateSource,
    DropObject,
    DropSavepoint,
    NextEpoch,
    PutSavepoint,
    PutSetting,
    PutSink,
    PutView,
    RecordVerdict,
    ResolvePending,
    Rewind,
    SetPosition,
    SetSinkProgress,
    SetSourceOptions,
    SetSourceProblem,
    SetViewState,
)
from laminae.catalog.write import compacted as write_compacted
from laminae.catalog.write import outputs as write_outputs
from laminae.catalog.write import savepoints as write_savepoints
from laminae.catalog.write import sources as write_sources
from laminae.catalog.write import state as write_state
from laminae.catalog.write.transaction import Writing, load_counters, save_counters
from laminae.errors import ConcurrentChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.drivers.protocol import Driver

# Plans depend on these and on nothing else, so only they change definition_seq.
DEFINITION_UPDATES = (
    CreateSource,
    AddVersion,
    SetSourceOptions,
    PutView,
    SetViewState,
    PutSink,
    DropObject,
    PutSetting,
)


def commit(
    driver: Driver, updates: Sequence[CatalogUpdate], lease_token: int | None, expected_seq: int | None
) -> Committed:
    with driver.write() as transaction:
        if lease_token is not None:
            assert_token(transaction, driver.location, lease_token)
        stored_counters = load_counters(transaction)
        counters = replace(stored_counters)
        if expected_seq not in (None, counters.definition_seq):
            raise ConcurrentChange(name="The catalog", expected=expected_seq, found=counters.definition_seq)
        if any(isinstance(update, DEFINITION_UPDATES) for update in updates):
            counters.definition_seq += 1
        writing = Writing(transaction, counters)
        ids = tuple([_make(update, writing) for update in updates])
        if counters != stored_counters:
            save_counters(transaction, counters)
    return Committed(counters.definition_seq, ids)


def _make(update: CatalogUpdate, writing: Writing) -> int:
    """The id or number assigned to the update, 0 if it has none."""
    match update:
        case BindWriter():
            return write_sources.bind_writer(update, writing)
        case CreateSource():
            return write_sources.create_source(update, writing)
        case AddVersion():
            return write_sources.add_version(update, writing)
        case SetSourceOptions():
            return write_sources.set_source_options(update, writing)
        case RecordVerdict():
            return write_sources.record_verdict(update, writing)
        case SetSourceProblem():
            return write_sources.set_source_problem(update, writing)
        case AddPending():
            return write_sources.add_pending(update, writing)
        case ResolvePending():
            return write_sources.resolve_pending(update, writing)
        case SetPosition():
            return write_sources.set_position(update, writing)
        case PutView():
            return write_outputs.put_view(update, writing)
        case SetViewState():
            return write_outputs.set_view_state(update, writing)
        case PutSink():
            return write_outputs.put_sink(update, writing)
        case SetSinkProgress():
            return write_outputs.set_sink_progress(update, writing)
        case DropObject():
            return write_outputs.drop_object(update, writing)
        case CommitEpoch():
            return write_outputs.commit_epoch(update, writing)
        case NextEpoch():
            return writing.next_epoch()
        case AdvanceOwner():
            return write_state.advance_owner(update, writing)
        case AdoptState():
            return write_state.adopt_state(update, writing)
        case PutSavepoint():
            return write_savepoints.put_savepoint(update, writing)
        case DropSavepoint():
            return write_savepoints.drop_savepoint(update, writing)
        case Rewind():
            return write_savepoints.rewind(update, writing)
        case ForgetSegments():
            return write_savepoints.forget_segments(update, writing)
        case ForgetChanges():
            return write_state.forget_changes(update, writing)
        case PutCompacted():
            return write_compacted.put_compacted(update, writing)
        case ForgetCompacted():
            return write_compacted.forget_compacted(update, writing)
        case PutSetting():
            return write_outputs.put_setting(update, writing)
        case _:
            assert_never(update)
