"""Schema registries, framed messages, and the forms of Avro types as columns."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class RegistryUnavailable(LaminaeError):
    code = "REGISTRY_UNAVAILABLE"
    row = ErrorRow(
        "The schema registry of {source} does not answer: {problem}",
        "Check the registry's address and health; records of known schemas go on in the meantime.",
    )


class RegistryRefused(LaminaeError):
    code = "REGISTRY_REFUSED"
    row = ErrorRow(
        "The schema registry of {source} refuses {request}: {problem}",
        "{advice}",
    )


class SchemaNotRegistered(LaminaeError):
    code = "SCHEMA_NOT_REGISTERED"
    row = ErrorRow(
        "The schema registry of {source} has no {wanted}",
        "Register the schema under the subject of the source, or name the right one with subject = '...'.",
    )


class SchemaTypeUnsupported(LaminaeError):
    code = "SCHEMA_TYPE_UNSUPPORTED"
    row = ErrorRow(
        "Schema id {schema_id} of {source} is {type}: such messages are not supported yet",
        "Write the topic with Avro schemas, or read it as format = 'json' where its messages are plain JSON.",
    )


class InvalidFrame(LaminaeError):
    code = "INVALID_FRAME"
    row = ErrorRow(
        "The message is not framed as a schema registry's client does it: {problem}",
        "Write the topic with a serializer that uses the registry, or name the format that its messages have.",
    )


class NoColumnForm(LaminaeError):
    code = "NO_COLUMN_FORM"
    row = ErrorRow(
        "{path} of the Avro schema cannot be a column: {problem}",
        "Change the type in the Avro schema, or write the topic with another schema for this source.",
    )


class NoAvroForm(LaminaeError):
    code = "NO_AVRO_FORM"
    row = ErrorRow(
        "Column {path} of type {type} cannot be written as Avro: {problem}",
        "Rename or cast the column in the view, or leave it out.",
    )
