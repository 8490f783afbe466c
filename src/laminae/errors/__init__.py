"""Every error laminae raises, in modules by the part that raises it: a class with its code, message and remedy.

`ERRORS` is the table of them all; the docs page is generated from it. Nothing here imports another part of laminae.
"""

from __future__ import annotations

from laminae.errors.catalog import (
    CatalogCorrupt,
    CatalogUnavailable,
    ChangeNotPending,
    ConcurrentChange,
    HomeUnwritable,
    LeaseHeld,
    LeaseLost,
    NewerHome,
)
from laminae.errors.root import (
    ErrorRow,
    LaminaeError,
)
from laminae.errors.schema import (
    EvolutionRejected,
    IncompatibleChange,
    InferenceFailed,
    InvalidAvroSchema,
    InvalidChange,
    InvalidDefault,
    InvalidSchema,
    RegistryUnavailable,
    SchemaMismatch,
)
from laminae.errors.sql import (
    DdlSyntaxError,
    DependentsExist,
    DuplicateColumn,
    DuplicateObject,
    InvalidName,
    InvalidOption,
    NotAvailable,
    QueryFailed,
    SecretInOption,
    UnknownColumn,
    UnknownObject,
    UnsupportedSql,
)
from laminae.errors.streams import (
    CheckpointDiverged,
    DeadLetterLimit,
    InvalidRow,
    LogDamaged,
    PipelineFailed,
    RecordRefused,
    SinkUnavailable,
    SourceTruncated,
    SourceUnavailable,
)
from laminae.errors.views import (
    AggregateOverflow,
    ChangelogExpired,
    InvalidChangeEvent,
    RunDamaged,
    StateIncompatible,
    ValueOverflow,
    ViewNotReady,
)

__all__ = [
    "ViewNotReady",
    "ChangelogExpired",
    "ERRORS",
    "AggregateOverflow",
    "CatalogCorrupt",
    "CatalogUnavailable",
    "ChangeNotPending",
    "CheckpointDiverged",
    "ConcurrentChange",
    "DdlSyntaxError",
    "DeadLetterLimit",
    "DependentsExist",
    "DuplicateColumn",
    "DuplicateObject",
    "ErrorRow",
    "EvolutionRejected",
    "HomeUnwritable",
    "IncompatibleChange",
    "InferenceFailed",
    "InvalidAvroSchema",
    "InvalidChange",
    "InvalidChangeEvent",
    "InvalidDefault",
    "InvalidName",
    "InvalidOption",
    "InvalidRow",
    "InvalidSchema",
    "LaminaeError",
    "LeaseHeld",
    "LeaseLost",
    "LogDamaged",
    "NewerHome",
    "NotAvailable",
    "PipelineFailed",
    "QueryFailed",
    "RecordRefused",
    "RegistryUnavailable",
    "RunDamaged",
    "SchemaMismatch",
    "SecretInOption",
    "SinkUnavailable",
    "SourceTruncated",
    "SourceUnavailable",
    "StateIncompatible",
    "UnknownColumn",
    "UnknownObject",
    "UnsupportedSql",
    "ValueOverflow",
]

ERRORS: dict[str, ErrorRow] = {code: error.row for code, error in sorted(LaminaeError.classes.items())}
