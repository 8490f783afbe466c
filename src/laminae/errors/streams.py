"""Running streams: logs of sources, records, epochs and delivery to sinks."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class RecordRefused(LaminaeError):
    code = "RECORD_REFUSED"
    row = ErrorRow(
        "{source} stopped at a record that cannot be decoded ({place}): {reason}",
        "Correct the schema or the producer; on_error = 'dead_letter' sets such records aside instead of stopping.",
    )


class DeadLetterLimit(LaminaeError):
    code = "DEAD_LETTER_LIMIT"
    row = ErrorRow(
        "{source} has {count} dead letters, its limit is {limit}",
        "Look at their reasons in laminar_catalog.dead_letters, correct the schema and replay them, or raise "
        "dead_letter_limit.",
    )


class PipelineFailed(LaminaeError):
    code = "PIPELINE_FAILED"
    row = ErrorRow(
        "The stream of {source} has stopped: {problem}",
        "Correct the cause and start the pipeline again; it goes on where the last committed epoch ended.",
    )


class CheckpointDiverged(LaminaeError):
    code = "CHECKPOINT_DIVERGED"
    row = ErrorRow(
        "Batch {batch} of {source} was committed with other offsets: {problem}",
        "Run `laminae repair`: it rebuilds the Spark checkpoint at the offsets of the catalog. Nothing was skipped.",
    )


class SourceUnavailable(LaminaeError):
    code = "SOURCE_UNAVAILABLE"
    row = ErrorRow(
        "Source {source} cannot be read at {location}: {problem}",
        "Make {location} readable as it was; the source then goes on where it stopped, and the others never stop.",
    )


class LogDamaged(LaminaeError):
    code = "LOG_DAMAGED"
    row = ErrorRow(
        "The log of source {source} is damaged at {file}: {problem}",
        "Restore the file from a backup, or drop the source and create it again; laminae does not guess at records.",
    )


class SourceTruncated(LaminaeError):
    code = "SOURCE_TRUNCATED"
    row = ErrorRow(
        "Records of source {source} are gone: {wanted} is asked for, and what is left begins at {first}.",
        "{advice}",
    )


class SnapshotExpired(LaminaeError):
    code = "SNAPSHOT_EXPIRED"
    row = ErrorRow(
        "Source {source} cannot be read at snapshot {snapshot} of {table}: {problem}",
        "Drop the source and create it again: it begins with the table as it is. Let snapshots and their files expire "
        "later than sources need them.",
    )


class InvalidRow(LaminaeError):
    code = "INVALID_ROW"
    row = ErrorRow(
        "Row {row} (counted from 0) for {source} cannot be stored as JSON at {path}: {problem}",
        "Correct the value and insert again; no row of this insert was stored.",
    )


class SinkUnavailable(LaminaeError):
    code = "SINK_UNAVAILABLE"
    row = ErrorRow(
        "Sink {sink} cannot write to {location}: {problem}",
        "See to it that {location} can be written as it was, or drop the sink; it is tried again by itself.",
    )
