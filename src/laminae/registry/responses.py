"""Parses responses of a registry: values from JSON, and the meaning of a status.

Parsers raise `ValueError` for unexpected JSON; the client adds which registry sent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import orjson

from laminae.registry.model import AVRO, Judgement, Reference, RegisteredSchema, SubjectVersion
from laminae.schema.compatibility import CompatibilityMode
from laminae.secrets import masked

if TYPE_CHECKING:
    from laminae.net.http import Response

_T = TypeVar("_T")

# "No such subject, version, schema, level": Confluent's error codes, which Apicurio returns too. A 404 with another
# code, or without one, comes from a wrong address and says nothing about schemas.
ABSENT = range(40401, 40500)
LONGEST_WORDS = 300

CHECK_REQUEST = "Correct the request according to the message of the registry."
# Statuses that a retry does not change, with advice for each. All others are retried.
REFUSALS = {
    301: "Use the address that the registry redirects to; credentials are not sent to another host.",
    302: "Use the address that the registry redirects to; credentials are not sent to another host.",
    307: "Use the address that the registry redirects to; credentials are not sent to another host.",
    308: "Use the address that the registry redirects to; credentials are not sent to another host.",
    400: CHECK_REQUEST,
    401: "Check the credentials in registry.basic.auth.user.info or registry.bearer.auth.token.",
    403: "Grant this permission to the credentials of the source, or use others.",
    404: "Check the address: it must be that of the Confluent API, including the path before /subjects.",
    405: "Check the address: it must be that of the Confluent API, including the path before /subjects.",
    409: "Make the schema compatible with the versions of its subject, or change the compatibility level of the "
    "subject.",
    413: CHECK_REQUEST,
    415: CHECK_REQUEST,
    422: CHECK_REQUEST,
}


def is_absent(response: Response) -> bool:
    if response.status != 404:
        return False
    try:
        return whole(member(object_of(orjson.loads(response.body)), "error_code", int)) in ABSENT
    except ValueError:
        return False


def error_text(response: Response) -> str:
    """The server's error message, truncated, and with anything that looks like a secret masked."""
    try:
        text = member(object_of(orjson.loads(response.body)), "message", str)
    except ValueError:
        text = ""
    shown = masked(" ".join(text.split()))[:LONGEST_WORDS]
    return f"status {response.status}" + (f", {shown}" if shown else "")


def texts(json: object) -> tuple[str, ...]:
    return tuple(checked(element, str) for element in checked(json, list))


def numbers(json: object) -> tuple[int, ...]:
    return tuple(whole(element) for element in checked(json, list))


def schema(json: object, schema_id: int) -> RegisteredSchema:
    fields = object_of(json)
    # Registries omit the type for Avro, which was their only one for a long time.
    kind = member(fields, "schemaType", str) if fields.get("schemaType") is not None else AVRO
    references = fields.get("references") or []
    return RegisteredSchema(
        schema_id,
        kind.upper(),
        member(fields, "schema", str),
        tuple(_reference(element) for element in checked(references, list)),
    )


def subject_version(json: object, subject: str) -> tuple[SubjectVersion, RegisteredSchema]:
    fields = object_of(json)
    version = SubjectVersion(subject, whole(fields.get("version")), whole(fields.get("id")))
    return version, schema(json, version.id)


def subject_versions(json: object, schema_id: int) -> tuple[SubjectVersion, ...]:
    return tuple(
        SubjectVersion(member(fields, "subject", str), whole(fields.get("version")), schema_id)
        for fields in map(object_of, checked(json, list))
    )


def level(json: object) -> CompatibilityMode:
    # In Confluent's own API, the response uses another field name than the request.
    fields = object_of(json)
    return CompatibilityMode(checked(fields.get("compatibilityLevel", fields.get("compatibility")), str).upper())


def judgement(json: object) -> Judgement:
    fields = object_of(json)
    return Judgement(member(fields, "is_compatible", bool), texts(fields.get("messages") or []))


def registered_id(json: object) -> int:
    return whole(object_of(json).get("id"))


def _reference(json: object) -> Reference:
    fields = object_of(json)
    return Reference(member(fields, "name", str), member(fields, "subject", str), whole(fields.get("version")))


def object_of(json: object) -> dict[str, object]:
    return checked(json, dict)


def member(fields: dict[str, object], name: str, kind: type[_T]) -> _T:
    return checked(fields.get(name), kind)


def whole(value: object) -> int:
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    return checked(value, int)


def checked(value: object, kind: type[_T]) -> _T:
    if not isinstance(value, kind):
        raise ValueError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value
