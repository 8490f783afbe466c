"""Schema registries, framed messages, and the forms of Avro types as columns."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class RegistryUnavailable(LaminaeError):
    code = "REGISTRY_UNAVAILABLE"
    row = ErrorRow(
        "The schema registry of {source} does not answer: {problem}",
        "Check the address and health of the registry. Records with known schemas are still processed.",
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
        "Register the schema under the subject of the source, or set subject = '...' to the correct subject.",
    )


class SchemaTypeUnsupported(LaminaeError):
    code = "SCHEMA_TYPE_UNSUPPORTED"
    row = ErrorRow(
        "Schema id {schema_id} of {source} is {type}, which is not supported",
        "Write the topic with Avro schemas, or set format = 'json' if the messages are plain JSON.",
    )


class InvalidFrame(LaminaeError):
    code = "INVALID_FRAME"
    row = ErrorRow(
        "The message is not in the Confluent wire format: {problem}",
        "Write the topic with a schema registry serializer, or set format to the format of the messages.",
    )


class NoColumnForm(LaminaeError):
    code = "NO_COLUMN_FORM"
    row = ErrorRow(
        "{path} of the Avro schema cannot be mapped to a column: {problem}",
        "Change the type in the Avro schema, or write another topic for this source.",
    )


class NoAvroForm(LaminaeError):
    code = "NO_AVRO_FORM"
    row = ErrorRow(
        "Column {path} of type {type} cannot be written as Avro: {problem}",
        "Rename, cast or omit the column in a view, and create the sink from that view.",
    )
