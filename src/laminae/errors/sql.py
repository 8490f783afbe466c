"""Statements: their syntax, the names and options in them, and what a query cannot answer."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class DdlSyntaxError(LaminaeError):
    code = "DDL_SYNTAX_ERROR"
    row = ErrorRow(
        "line {line}, column {column}: {problem}\n{snippet}",
        "Correct the statement at the mark; {expected}",
    )


class UnsupportedSql(LaminaeError):
    code = "UNSUPPORTED_SQL"
    row = ErrorRow(
        "line {line}, column {column}: {construct} is not supported here",
        "{advice}",
    )


class UnknownObject(LaminaeError):
    code = "UNKNOWN_OBJECT"
    row = ErrorRow(
        "There is no {kind} named {name}",
        "Check the spelling{suggestion}; SHOW SOURCES, SHOW VIEWS and SHOW SINKS list what exists.",
    )


class UnknownColumn(LaminaeError):
    code = "UNKNOWN_COLUMN"
    row = ErrorRow(
        "{source} has no column {path}",
        "Check the spelling{suggestion}; DESCRIBE SOURCE lists the columns.",
    )


class DuplicateObject(LaminaeError):
    code = "DUPLICATE_OBJECT"
    row = ErrorRow(
        "A {kind} named {name} exists already",
        "Choose another name, use IF NOT EXISTS, or drop the present one first.",
    )


class DuplicateColumn(LaminaeError):
    code = "DUPLICATE_COLUMN"
    row = ErrorRow(
        "{source} has a column {path} already (names that differ only in case are the same name)",
        "Choose another name, or add IF NOT EXISTS to leave the present column as it is.",
    )


class InvalidName(LaminaeError):
    code = "INVALID_NAME"
    row = ErrorRow(
        "{name} cannot name a {kind}: {problem}",
        "Use a non-empty name of at most 255 characters that is not reserved; quote unusual ones with backticks.",
    )


class InvalidOption(LaminaeError):
    code = "INVALID_OPTION"
    row = ErrorRow(
        "Option {option} of {owner} is not valid: {problem}",
        "{advice}",
    )


class SecretInOption(LaminaeError):
    code = "SECRET_IN_OPTION"
    row = ErrorRow(
        "Option {option} of {owner} holds a literal secret",
        "Write a reference, '${{env:NAME}}' or '${{file:/path}}'; it is resolved when used and never stored.",
    )


class DependentsExist(LaminaeError):
    code = "DEPENDENTS_EXIST"
    row = ErrorRow(
        "{name} is used by {dependents}",
        "Drop or change the dependents first{cascade}. A PRIMARY KEY or WATERMARK is fixed when its source is created.",
    )


class QueryFailed(LaminaeError):
    code = "QUERY_FAILED"
    row = ErrorRow(
        "The query cannot be answered: {problem}",
        "Check names and types against DESCRIBE SOURCE and the columns of laminar_catalog.",
    )


class NotAvailable(LaminaeError):
    code = "NOT_AVAILABLE"
    row = ErrorRow(
        "{feature} is not available: {problem}",
        "{advice}",
    )
