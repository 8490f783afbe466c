"""Every error laminae raises: one table of code, message and remedy, and one small class for each row.

The docs page is generated from `ERRORS`. Nothing here imports another part of laminae.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One row of the error table. `{name}` in a text is a parameter that the raise site must give."""

    message: str
    remedy: str

    @property
    def parameters(self) -> tuple[str, ...]:
        names = (name for text in (self.message, self.remedy) for _, name, _, _ in Formatter().parse(text) if name)
        return tuple(dict.fromkeys(names))


ERRORS: dict[str, ErrorRow] = {
    # Schemas and their evolution
    "EVOLUTION_REJECTED": ErrorRow(
        "The change to {source} breaks {mode} compatibility ({rules} rules): {reasons}",
        "Follow the remedy of each reason, relax the mode with ALTER SOURCE ... SET COMPATIBILITY, "
        "or add FORCE to the statement.",
    ),
    "INCOMPATIBLE_CHANGE": ErrorRow(
        "The change to {source} cannot be decoded under any mode: {reasons}",
        "Add a column of the new type and drop the old one; FORCE does not help, because stored records would not fit.",
    ),
    "SCHEMA_MISMATCH": ErrorRow(
        "A batch does not fit the schema at {path}: {problem}",
        "Decode the batch with the schema version it was written with, or correct the value at the named path.",
    ),
    "INVALID_SCHEMA": ErrorRow(
        "The schema is not valid at {path}: {problem}",
        "Correct the column at the named path: names are not empty and differ in more than case, and its type must be "
        "allowed where it stands.",
    ),
    "INVALID_CHANGE": ErrorRow(
        "The change at {path} does not apply to this schema: {problem}",
        "Compute the changes with diff_schemas against the schema they are applied to.",
    ),
    "INVALID_DEFAULT": ErrorRow(
        "The default {default} of column {path} does not fit type {type}: {problem}",
        "Write a literal of the column's type that fits its range, or remove the default: leave DEFAULT out, or "
        "ALTER COLUMN ... DROP DEFAULT first.",
    ),
    "INVALID_AVRO_SCHEMA": ErrorRow(
        "The Avro schema is not valid at {path}: {problem}",
        "Correct the schema at the named path; the Avro specification lists what each type needs.",
    ),
    "INFERENCE_FAILED": ErrorRow(
        "No schema can be inferred for {source}: {problem}",
        "Declare the columns with ALTER SOURCE ... ADD COLUMN, or give the source data that can be read.",
    ),
    "REGISTRY_UNAVAILABLE": ErrorRow(
        "The schema registry of {source} does not answer: {problem}",
        "Check the registry's address and health; records of known schemas go on in the meantime.",
    ),
    # SQL
    "DDL_SYNTAX_ERROR": ErrorRow(
        "line {line}, column {column}: {problem}\n{snippet}",
        "Correct the statement at the mark; {expected}",
    ),
    "UNSUPPORTED_SQL": ErrorRow(
        "line {line}, column {column}: {construct} is not supported here",
        "{advice}",
    ),
    "UNKNOWN_OBJECT": ErrorRow(
        "There is no {kind} named {name}",
        "Check the spelling{suggestion}; SHOW SOURCES, SHOW VIEWS and SHOW SINKS list what exists.",
    ),
    "UNKNOWN_COLUMN": ErrorRow(
        "{source} has no column {path}",
        "Check the spelling{suggestion}; DESCRIBE SOURCE lists the columns.",
    ),
    "DUPLICATE_OBJECT": ErrorRow(
        "A {kind} named {name} exists already",
        "Choose another name, use IF NOT EXISTS, or drop the present one first.",
    ),
    "DUPLICATE_COLUMN": ErrorRow(
        "{source} has a column {path} already (names that differ only in case are the same name)",
        "Choose another name, or add IF NOT EXISTS to leave the present column as it is.",
    ),
    "INVALID_NAME": ErrorRow(
        "{name} cannot name a {kind}: {problem}",
        "Use a non-empty name of at most 255 characters that is not reserved; quote unusual ones with backticks.",
    ),
    "INVALID_OPTION": ErrorRow(
        "Option {option} of {owner} is not valid: {problem}",
        "{advice}",
    ),
    "SECRET_IN_OPTION": ErrorRow(
        "Option {option} of {owner} holds a literal secret",
        "Write a reference, '${{env:NAME}}' or '${{file:/path}}'; it is resolved when used and never stored.",
    ),
    "DEPENDENTS_EXIST": ErrorRow(
        "{name} is used by {dependents}",
        "Drop or change the dependents first{cascade}. A PRIMARY KEY or WATERMARK is fixed when its source is created.",
    ),
    "QUERY_FAILED": ErrorRow(
        "The query cannot be answered: {problem}",
        "Check names and types against DESCRIBE SOURCE and the columns of laminar_catalog.",
    ),
    "NOT_AVAILABLE": ErrorRow(
        "{feature} is not available: {problem}",
        "{advice}",
    ),
    # Catalog and home
    "CONCURRENT_CHANGE": ErrorRow(
        "{name} was changed by someone else: expected version {expected}, found {found}",
        "Read the object again and repeat the statement; nothing was changed by this one.",
    ),
    "CHANGE_NOT_PENDING": ErrorRow(
        "Change {change_id} of {source} is not pending: {problem}",
        "List what waits with SELECT * FROM laminar_catalog.pending_changes.",
    ),
    "CATALOG_UNAVAILABLE": ErrorRow(
        "The catalog {location} cannot be used: {problem}",
        "{advice}",
    ),
    "CATALOG_CORRUPT": ErrorRow(
        "The catalog {location} is damaged: {problem}",
        "Restore the file from a backup; laminae does not guess at damaged definitions.",
    ),
    "NEWER_HOME": ErrorRow(
        "{location} was written by a newer laminae (format {found}, this one knows up to {known})",
        "Install a laminae at least as new as the one that wrote it.",
    ),
    "HOME_UNWRITABLE": ErrorRow(
        "The home {location} cannot be written: {problem}",
        "Give the user write permission there, free space on the disk, or choose another home.",
    ),
    "LEASE_HELD": ErrorRow(
        "{location} is being run by {holder}",
        "Stop that driver first; if it is dead, its lease expires by itself within {seconds} seconds.",
    ),
    # Pipelines
    "RECORD_REFUSED": ErrorRow(
        "{source} stopped at a record that cannot be decoded ({place}): {reason}",
        "Correct the schema or the producer; on_error = 'dead_letter' sets such records aside instead of stopping.",
    ),
    "DEAD_LETTER_LIMIT": ErrorRow(
        "{source} has {count} dead letters, its limit is {limit}",
        "Look at their reasons in laminar_catalog.dead_letters, correct the schema and replay them, or raise "
        "dead_letter_limit.",
    ),
    "PIPELINE_FAILED": ErrorRow(
        "The stream of {source} has stopped: {problem}",
        "Correct the cause and start the pipeline again; it goes on where the last committed epoch ended.",
    ),
    "CHECKPOINT_DIVERGED": ErrorRow(
        "Batch {batch} of {source} was committed with other offsets: {problem}",
        "Run `laminae repair`: it rebuilds the Spark checkpoint at the offsets of the catalog. Nothing was skipped.",
    ),
    "LEASE_LOST": ErrorRow(
        "The lease on {location} was taken over by {holder} (token {found}, ours was {expected})",
        "Stop this driver: another one is running the pipelines. Nothing of this epoch was committed.",
    ),
    # State of views
    "RUN_DAMAGED": ErrorRow(
        "The state file {file} cannot be used: {problem}",
        "Restore the file from a backup or the last savepoint; epochs that do not need it stay readable.",
    ),
    "STATE_INCOMPATIBLE": ErrorRow(
        "The state in {file} cannot be read under the new schema at {path}: {problem}",
        "Keep the column as the state has it, or create the view again so that its state is built anew.",
    ),
    "AGGREGATE_OVERFLOW": ErrorRow(
        "{aggregate} of view {view} is {value} for the key {key}, which {type} cannot hold",
        "Cast the argument to a wider type (DECIMAL(38, s), say) with CREATE OR REPLACE, then RESUME the view.",
    ),
    # Changelogs
    "VALUE_OVERFLOW": ErrorRow(
        "{aggregate} of {what} is {value}, which {type} cannot hold",
        "Cast the argument to a wider type, DECIMAL(38, 0) for instance.",
    ),
    "INVALID_CHANGE_EVENT": ErrorRow(
        "The change event cannot be read at {path}: {problem}",
        "Send Debezium events as JSON, with or without their schema; op is one of {operations}.",
    ),
    # Logs of sources and delivery to sinks
    "SOURCE_UNAVAILABLE": ErrorRow(
        "Source {source} cannot be read at {location}: {problem}",
        "Make {location} readable as it was; the source then goes on where it stopped, and the others never stop.",
    ),
    "LOG_DAMAGED": ErrorRow(
        "The log of source {source} is damaged at {file}: {problem}",
        "Restore the file from a backup, or drop the source and create it again; laminae does not guess at records.",
    ),
    "SOURCE_TRUNCATED": ErrorRow(
        "Records of source {source} are gone: item {wanted} is asked for, retention has left those from {first} on.",
        "Keep records longer with ALTER SOURCE ... SET (spool_retention = '...'); what is gone stays gone.",
    ),
    "INVALID_ROW": ErrorRow(
        "Row {row} (counted from 0) for {source} cannot be stored as JSON at {path}: {problem}",
        "Correct the value and insert again; no row of this insert was stored.",
    ),
    "SINK_UNAVAILABLE": ErrorRow(
        "Sink {sink} cannot write to {location}: {problem}",
        "Make {location} a directory that can be written, or drop the sink; it is tried again by itself.",
    ),
}


class LaminaeError(Exception):
    """Root of all errors. `code` is stable, `params` are the values behind the text, `remedy` says what to do."""

    code: ClassVar[str]
    classes: ClassVar[dict[str, type[LaminaeError]]] = {}

    def __init_subclass__(cls) -> None:
        row = ERRORS[cls.code]
        cls.__doc__ = f"{cls.code}: {row.message}"
        LaminaeError.classes[cls.code] = cls

    def __init__(self, **params: object) -> None:
        row = ERRORS[self.code]
        if unknown := params.keys() ^ set(row.parameters):
            raise TypeError(f"{type(self).__name__} needs exactly {row.parameters}, differs in {sorted(unknown)}")
        self.params = params
        self.message = row.message.format(**params)
        self.remedy = row.remedy.format(**params)
        super().__init__(f"[{self.code}] {self.message}\n  remedy: {self.remedy}")

    def __reduce__(self) -> tuple[object, tuple[type[LaminaeError], dict[str, object]]]:
        return _rebuild, (type(self), self.params)


def _rebuild(cls: type[LaminaeError], params: dict[str, object]) -> LaminaeError:
    return cls(**params)


class EvolutionRejected(LaminaeError):
    code = "EVOLUTION_REJECTED"


class IncompatibleChange(EvolutionRejected):
    code = "INCOMPATIBLE_CHANGE"


class SchemaMismatch(LaminaeError):
    code = "SCHEMA_MISMATCH"


class InvalidSchema(LaminaeError):
    code = "INVALID_SCHEMA"


class InvalidChange(LaminaeError):
    code = "INVALID_CHANGE"


class InvalidDefault(LaminaeError):
    code = "INVALID_DEFAULT"


class InvalidAvroSchema(LaminaeError):
    code = "INVALID_AVRO_SCHEMA"


class InferenceFailed(LaminaeError):
    code = "INFERENCE_FAILED"


class RegistryUnavailable(LaminaeError):
    code = "REGISTRY_UNAVAILABLE"


class DdlSyntaxError(LaminaeError):
    code = "DDL_SYNTAX_ERROR"


class UnsupportedSql(LaminaeError):
    code = "UNSUPPORTED_SQL"


class UnknownObject(LaminaeError):
    code = "UNKNOWN_OBJECT"


class UnknownColumn(LaminaeError):
    code = "UNKNOWN_COLUMN"


class DuplicateObject(LaminaeError):
    code = "DUPLICATE_OBJECT"


class DuplicateColumn(LaminaeError):
    code = "DUPLICATE_COLUMN"


class InvalidName(LaminaeError):
    code = "INVALID_NAME"


class InvalidOption(LaminaeError):
    code = "INVALID_OPTION"


class SecretInOption(LaminaeError):
    code = "SECRET_IN_OPTION"


class DependentsExist(LaminaeError):
    code = "DEPENDENTS_EXIST"


class QueryFailed(LaminaeError):
    code = "QUERY_FAILED"


class NotAvailable(LaminaeError):
    code = "NOT_AVAILABLE"


class ConcurrentChange(LaminaeError):
    code = "CONCURRENT_CHANGE"


class ChangeNotPending(LaminaeError):
    code = "CHANGE_NOT_PENDING"


class CatalogUnavailable(LaminaeError):
    code = "CATALOG_UNAVAILABLE"


class CatalogCorrupt(LaminaeError):
    code = "CATALOG_CORRUPT"


class NewerHome(LaminaeError):
    code = "NEWER_HOME"


class HomeUnwritable(LaminaeError):
    code = "HOME_UNWRITABLE"


class LeaseHeld(LaminaeError):
    code = "LEASE_HELD"


class LeaseLost(LaminaeError):
    code = "LEASE_LOST"


class CheckpointDiverged(LaminaeError):
    code = "CHECKPOINT_DIVERGED"


class RecordRefused(LaminaeError):
    code = "RECORD_REFUSED"


class DeadLetterLimit(LaminaeError):
    code = "DEAD_LETTER_LIMIT"


class PipelineFailed(LaminaeError):
    code = "PIPELINE_FAILED"


class RunDamaged(LaminaeError):
    code = "RUN_DAMAGED"


class StateIncompatible(LaminaeError):
    code = "STATE_INCOMPATIBLE"


class AggregateOverflow(LaminaeError):
    code = "AGGREGATE_OVERFLOW"


class ValueOverflow(LaminaeError, OverflowError):
    code = "VALUE_OVERFLOW"


class InvalidChangeEvent(LaminaeError, ValueError):
    code = "INVALID_CHANGE_EVENT"


class SourceUnavailable(LaminaeError):
    code = "SOURCE_UNAVAILABLE"


class LogDamaged(LaminaeError):
    code = "LOG_DAMAGED"


class SourceTruncated(LaminaeError):
    code = "SOURCE_TRUNCATED"


class InvalidRow(LaminaeError):
    code = "INVALID_ROW"


class SinkUnavailable(LaminaeError):
    code = "SINK_UNAVAILABLE"
