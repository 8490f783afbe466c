"""State that is carried over to a changed schema: rows, snapshots, and checkpoints of Spark queries."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class InvalidRowBytes(LaminaeError, ValueError):
    code = "INVALID_ROW_BYTES"
    row = ErrorRow(
        "A state row cannot be read or written: {problem}",
        "Check that the schema is the one the rows were written with.",
    )


class InvalidSnapshot(LaminaeError, ValueError):
    code = "INVALID_SNAPSHOT"
    row = ErrorRow(
        "The snapshot of a serializer cannot be read: {problem}",
        "Read it with the version of laminae that wrote it, or a newer one.",
    )


class CheckpointInvalid(LaminaeError):
    code = "CHECKPOINT_INVALID"
    row = ErrorRow("{checkpoint} cannot be read as the checkpoint of a stateful query: {problem}", "{advice}")


class CheckpointInUse(LaminaeError):
    code = "CHECKPOINT_IN_USE"
    row = ErrorRow(
        "A query is running on {checkpoint}: {evidence}",
        "Stop the query and try again. Its state is migrated from the last committed batch.",
    )


class CheckpointExists(LaminaeError):
    code = "CHECKPOINT_EXISTS"
    row = ErrorRow(
        "The target {checkpoint} already exists",
        "Specify a directory that does not exist. laminae never writes into an existing checkpoint.",
    )


class InvalidQuery(LaminaeError):
    code = "INVALID_QUERY"
    row = ErrorRow("The query {query} cannot be used: {problem}", "{advice}")


class StateRefused(LaminaeError):
    """`reasons` are the values behind the text."""

    code = "STATE_REFUSED"
    row = ErrorRow(
        "The state of {checkpoint} cannot be migrated to the new query:\n{reasons}",
        "Follow the remedy of each reason, or start the changed query with a new, empty checkpoint.",
    )


class StateEvolutionDisabled(LaminaeError):
    code = "STATE_EVOLUTION_DISABLED"
    row = ErrorRow(
        "The state of {checkpoint} must be migrated for the new query ({changes}), and that is not enabled",
        "Set state.schema-evolution.enable = true (--enable on the command line, enable=True in Python).",
    )


class MigrationFailed(LaminaeError):
    code = "MIGRATION_FAILED"
    row = ErrorRow(
        "The migration of {checkpoint} failed: {problem}",
        "The old checkpoint is unchanged and no new one was created. Fix the cause and run the migration again.",
    )
