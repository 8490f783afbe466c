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
        "The change to {source} cannot be decoded under any mode: {reasons}",
        "Add a column of the new type and drop the old one; FORCE does not help, because stored records would not fit.",
    )


class SchemaMismatch(LaminaeError):
    code = "SCHEMA_MISMATCH"
    row = ErrorRow(
        "A batch does not fit the schema at {path}: {problem}",
        "Decode the batch with the schema version it was written with, or correct the value at the named path.",
    )


class InvalidSchema(LaminaeError):
    code = "INVALID_SCHEMA"
    row = ErrorRow(
        "The schema is not valid at {path}: {problem}",
        "Correct the column at the named path: names are not empty and differ in more than case, and its type must be "
        "allowed where it stands.",
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
        "Correct the schema at the named path; the Avro specification lists what each type needs.",
    )


class InferenceFailed(LaminaeError):
    code = "INFERENCE_FAILED"
    row = ErrorRow(
        "No schema can be inferred for {source}: {problem}",
        "Declare the columns with ALTER SOURCE ... ADD COLUMN, or give the source data that can be read.",
    )
