"""The state of views, their aggregates, and the changelogs they read."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class RunDamaged(LaminaeError):
    code = "RUN_DAMAGED"
    row = ErrorRow(
        "The state file {file} cannot be used: {problem}",
        "Restore the file from a backup or the last savepoint; epochs that do not need it stay readable.",
    )


class StateIncompatible(LaminaeError):
    code = "STATE_INCOMPATIBLE"
    row = ErrorRow(
        "The state in {file} cannot be read under the new schema at {path}: {problem}",
        "Keep the column as the state has it, or create the view again so that its state is built anew.",
    )


class AggregateOverflow(LaminaeError):
    code = "AGGREGATE_OVERFLOW"
    row = ErrorRow(
        "{aggregate} of view {view} is {value} for the key {key}, which {type} cannot hold",
        "Cast the argument to a wider type (DECIMAL(38, s), say) with CREATE OR REPLACE, then RESUME the view.",
    )


class ValueOverflow(LaminaeError, OverflowError):
    code = "VALUE_OVERFLOW"
    row = ErrorRow(
        "{aggregate} of {what} is {value}, which {type} cannot hold",
        "Cast the argument to a wider type, DECIMAL(38, 0) for instance.",
    )


class InvalidChangeEvent(LaminaeError, ValueError):
    code = "INVALID_CHANGE_EVENT"
    row = ErrorRow(
        "The change event cannot be read at {path}: {problem}",
        "Send Debezium events as JSON, with or without their schema; op is one of {operations}.",
    )


class ViewNotReady(LaminaeError):
    code = "VIEW_NOT_READY"
    row = ErrorRow(
        "Materialized view {view} is {state}: {problem}",
        "Run the pipeline until it is live (SHOW VIEWS); resume a failed one with ALTER MATERIALIZED VIEW ... RESUME.",
    )


class ChangelogExpired(LaminaeError):
    code = "CHANGELOG_EXPIRED"
    row = ErrorRow(
        "The changes of {view} are kept from epoch {first} on, those since epoch {since} were asked for",
        "Read the view itself and its changes from there, or set a longer changelog_retention.",
    )
