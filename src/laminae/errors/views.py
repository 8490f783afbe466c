"""The state of views, their aggregates, and the changelogs they read."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class RunDamaged(LaminaeError):
    code = "RUN_DAMAGED"
    row = ErrorRow(
        "The state file {file} cannot be used: {problem}",
        "Restore the file from a backup, or restore a savepoint. Epochs that do not use the file stay readable.",
    )


class StateIncompatible(LaminaeError):
    code = "STATE_INCOMPATIBLE"
    row = ErrorRow(
        "The state in {file} cannot be read under the new schema at {path}: {problem}",
        "Keep the column as it is in the state, or replace the view to rebuild its state.",
    )


class AggregateOverflow(LaminaeError):
    code = "AGGREGATE_OVERFLOW"
    row = ErrorRow(
        "{aggregate} of view {view} is {value} for the key {key}, which {type} cannot hold",
        "Cast the argument to a wider type, for example DECIMAL(38, s), with CREATE OR REPLACE, then RESUME the view.",
    )


class ValueOverflow(LaminaeError, OverflowError):
    code = "VALUE_OVERFLOW"
    row = ErrorRow(
        "{aggregate} of {what} is {value}, which {type} cannot hold",
        "Cast the argument to a wider type, for example DECIMAL(38, 0).",
    )


class InvalidChangeEvent(LaminaeError, ValueError):
    code = "INVALID_CHANGE_EVENT"
    row = ErrorRow(
        "The change event cannot be read at {path}: {problem}",
        "Send Debezium events as JSON, with or without schema; op must be one of {operations}.",
    )


class ViewNotReady(LaminaeError):
    code = "VIEW_NOT_READY"
    row = ErrorRow(
        "Materialized view {view} is {state}: {problem}",
        "Run the pipeline until SHOW VIEWS shows it as live. Resume a failed view with ALTER MATERIALIZED VIEW "
        "... RESUME.",
    )


class ChangelogExpired(LaminaeError):
    code = "CHANGELOG_EXPIRED"
    row = ErrorRow(
        "The changes of {view} since epoch {since} are not retained; the first retained epoch is {first}",
        "Read the view itself and then its changes from that epoch on, or increase changelog_retention.",
    )
