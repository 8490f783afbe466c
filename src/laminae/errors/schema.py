"""Schemas, their evolution, and what is read to find them."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class EvolutionRejected(LaminaeError):
    code = "EVOLUTION_REJECTED"
    row = ErrorRow(
        "The change to {source} breaks {mode} compatibility ({rules} rules): {reasons}",
        "Follow the remedy of each reason, or relax the mode with ALTER SOURCE ... SET COMPATIBILITY{alternative}.",
    )


class IncompatibleChange(EvolutionRejected):
    code = "INCOMPATIBLE_CHANGE"
    row = ErrorRow(
        "The change to {source} is incompatible under every mode: {reasons}",
        "Add a column of the new type and drop the old one. FORCE cannot override this, because stored values "
        "would not fit.",
    )


class ValuesNotExact(LaminaeError):
    code = "VALUES_NOT_EXACT"
    row = ErrorRow(
        "Change {change_id} of {source} cannot be confirmed: {column} has whole numbers beyond 2^53, such as {value}, "
        "which DOUBLE does not hold exactly",
        "Reject the change: records with fractions stay dead letters. To accept them, write the fractions to a "
        "field of another name.",
    )


class SchemaMismatch(LaminaeError):
    code = "SCHEMA_MISMATCH"
    row = ErrorRow(
        "A batch does not fit the schema at {path}: {problem}",
        "Decode the batch with the schema version it was written with, or correct the value at this path.",
    )


class InvalidSchema(LaminaeError):
    code = "INVALID_SCHEMA"
    row = ErrorRow(
        "The schema is not valid at {path}: {problem}",
        "Correct the column at this path. Names must not be empty or differ only in case, and the type must be "
        "allowed at this position.",
    )


class InvalidChange(LaminaeError):
    code = "INVALID_CHANGE"
    row = ErrorRow(
        "The change at {path} does not apply to this schema: {problem}",
        "Compute the changes with diff_schemas against the schema they are applied to.",
    )


class InvalidDefault(LaminaeError):
    code = "INVALID_DEFAULT"
    row = ErrorRow(
        "The default {default} of column {path} does not fit type {type}: {problem}",
        "Write a literal of the column's type that fits its range, or remove the default: leave DEFAULT out, or "
        "ALTER COLUMN ... DROP DEFAULT first.",
    )


class InvalidAvroSchema(LaminaeError):
    code = "INVALID_AVRO_SCHEMA"
    row = ErrorRow(
        "The Avro schema is not valid at {path}: {problem}",
        "Correct the schema at this path; see the Avro specification for the attributes of each type.",
    )


class InferenceFailed(LaminaeError):
    code = "INFERENCE_FAILED"
    row = ErrorRow(
        "No schema can be inferred for {source}: {problem}",
        "Declare the columns with ALTER SOURCE ... ADD COLUMN, or provide data that can be read.",
    )
