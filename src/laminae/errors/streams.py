"""Running streams: logs of sources, records, epochs and delivery to sinks."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class RecordRefused(LaminaeError):
    code = "RECORD_REFUSED"
    row = ErrorRow(
        "{source} stopped at a record that cannot be decoded ({place}): {reason}",
        "Correct the schema or the producer; with on_error = 'dead_letter' such records become dead letters and "
        "the source continues.",
    )


class DeadLetterLimit(LaminaeError):
    code = "DEAD_LETTER_LIMIT"
    row = ErrorRow(
        "{source} has {count} dead letters; its limit is {limit}",
        "Read the reasons in laminar_catalog.dead_letters, correct the schema and replay them, or increase "
        "dead_letter_limit.",
    )


class PipelineFailed(LaminaeError):
    code = "PIPELINE_FAILED"
    row = ErrorRow(
        "The stream of {source} has stopped: {problem}",
        "Fix the cause and start the pipeline again. It resumes after the last committed epoch.",
    )


class CheckpointDiverged(LaminaeError):
    code = "CHECKPOINT_DIVERGED"
    row = ErrorRow(
        "Batch {batch} of {source} was committed with different offsets: {problem}",
        "Run `laminae repair` to rebuild the Spark checkpoint at the offsets of the catalog. No records were skipped.",
    )


class SourceUnavailable(LaminaeError):
    code = "SOURCE_UNAVAILABLE"
    row = ErrorRow(
        "Source {source} cannot be read at {location}: {problem}",
        "Restore read access to {location}; the source resumes automatically. Other sources are not affected.",
    )


class SourceFileChanged(SourceUnavailable):
    code = "SOURCE_FILE_CHANGED"
    row = ErrorRow(
        "File {location} of source {source} has changed since it was listed: {problem}",
        "{advice}. Files are read once: write to a temporary name and rename when complete.",
    )


class SubdirectoryNotRead(LaminaeError):
    code = "SUBDIRECTORY_NOT_READ"
    row = ErrorRow(
        "Source {source} does not read the subdirectory {location}",
        "Create a source with path = '{pattern}' to include subdirectories, or move the files.",
    )


class LogDamaged(LaminaeError):
    code = "LOG_DAMAGED"
    row = ErrorRow(
        "The log of source {source} is damaged at {file}: {problem}",
        "Restore the file from a backup, or drop the source and create it again.",
    )


class SourceTruncated(LaminaeError):
    code = "SOURCE_TRUNCATED"
    row = ErrorRow(
        "Records of source {source} have been removed: {wanted} was requested, the first available is {first}.",
        "{advice}",
    )


class SnapshotExpired(LaminaeError):
    code = "SNAPSHOT_EXPIRED"
    row = ErrorRow(
        "Source {source} cannot be read at snapshot {snapshot} of {table}: {problem}",
        "Drop the source and create it again to start from the current table. Keep snapshots and their files until "
        "every source has read them.",
    )


class InvalidRow(LaminaeError):
    code = "INVALID_ROW"
    row = ErrorRow(
        "Row {row} (counted from 0) for {source} cannot be stored as JSON at {path}: {problem}",
        "Correct the value and repeat the insert. No row of this insert was stored.",
    )


class DeliveryFailed(LaminaeError):
    code = "DELIVERY_FAILED"
    row = ErrorRow(
        "All records were processed, but delivery to sink {sinks} failed: {problem}",
        "Fix the cause and run again. Committed rows are retained and delivered exactly once.",
    )


class SinkUnavailable(LaminaeError):
    code = "SINK_UNAVAILABLE"
    row = ErrorRow(
        "Sink {sink} cannot write to {location}: {problem}",
        "Restore write access to {location}, or drop the sink; delivery is retried automatically.",
    )


class SinkTableOutdated(LaminaeError):
    code = "SINK_TABLE_OUTDATED"
    row = ErrorRow(
        "Sink {sink} cannot write to {location}: {problem}",
        "Run in the database: {statements} -- delivery then resumes without loss. "
        "A sink with evolve = 'auto' alters its table itself.",
    )


class SinkColumnRefused(LaminaeError):
    code = "SINK_COLUMN_REFUSED"
    row = ErrorRow(
        "Sink {sink} cannot write column {column}: {problem}",
        "Rename the column in the source, or select it under another name in a view and create the sink from "
        "that view.",
    )
