"""Statements: their syntax, the names and options in them, and what a query cannot answer."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class DdlSyntaxError(LaminaeError):
    code = "DDL_SYNTAX_ERROR"
    row = ErrorRow(
        "line {line}, column {column}: {problem}\n{snippet}",
        "Correct the statement at the marked position; {expected}",
    )


class UnsupportedSql(LaminaeError):
    code = "UNSUPPORTED_SQL"
    row = ErrorRow(
        "line {line}, column {column}: {construct} is not supported here",
        "{advice}",
    )


class FunctionNotAllowed(LaminaeError):
    code = "FUNCTION_NOT_ALLOWED"
    row = ErrorRow(
        "The function {function} cannot be called here: {problem}",
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


class AmbiguousColumn(LaminaeError):
    code = "AMBIGUOUS_COLUMN"
    row = ErrorRow(
        "{name} may be any of {candidates}",
        "Write the relation in front of the column, as in t.{name}.",
    )


class DuplicateObject(LaminaeError):
    code = "DUPLICATE_OBJECT"
    row = ErrorRow(
        "A {kind} named {name} already exists",
        "Choose another name, use IF NOT EXISTS, or drop the existing one first.",
    )


class DuplicateColumn(LaminaeError):
    code = "DUPLICATE_COLUMN"
    row = ErrorRow(
        "{source} already has a column {path} (names are compared without case)",
        "Choose another name, or add IF NOT EXISTS to keep the existing column.",
    )


class InvalidName(LaminaeError):
    code = "INVALID_NAME"
    row = ErrorRow(
        "{name} is not a valid name for a {kind}: {problem}",
        "Use a name of 1 to 255 characters that is not reserved; quote special characters with backticks.",
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
        "Option {option} of {owner} contains a literal that is or may be a secret",
        "Write a reference, '${{env:NAME}}' or '${{file:/path}}'; it is resolved at use and its value is never stored.",
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
