"""One commit: every update of the closed set to the function that makes it, under one set of counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from laminae.catalog import write_outputs, write_savepoints, write_sources, write_state
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
    ForgetChanges,
    ForgetSegments,
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
from laminae.catalog.writing import Writing, load_counters, save_counters
from laminae.errors import ConcurrentChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.driver import Driver

# A plan depends on these and on nothing else, so they alone move definition_seq.
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
        found = load_counters(transaction)
        counters = replace(found)
        if expected_seq not in (None, counters.definition_seq):
            raise ConcurrentChange(name="The catalog", expected=expected_seq, found=counters.definition_seq)
        if any(isinstance(update, DEFINITION_UPDATES) for update in updates):
            counters.definition_seq += 1
        writing = Writing(transaction, counters)
        ids = tuple([_make(update, writing) for update in updates])
        if counters != found:
            save_counters(transaction, counters)
    return Committed(counters.definition_seq, ids)


def _make(update: CatalogUpdate, writing: Writing) -> int:
    """The id or number that the update was given, 0 where it has none."""
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
        case PutSetting():
            return write_outputs.put_setting(update, writing)
        case _:
            assert_never(update)
