"""What answers of a registry say: values out of JSON, and what a status means.

A reader raises `ValueError` for JSON of another form; the client says whose answer that was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import orjson

from laminae.registry.model import AVRO, Judgement, Reference, RegisteredSchema, SubjectVersion
from laminae.schema.compatibility import CompatibilityMode
from laminae.secrets import masked

if TYPE_CHECKING:
    from laminae.registry.http import Answer

_T = TypeVar("_T")

# "No such subject, version, schema, level": Confluent's error codes, which Apicurio gives too. A 404 with any other
# code, or without one, comes from a wrong address and says nothing about schemas.
ABSENT = range(40401, 40500)
LONGEST_WORDS = 300

CHECK_REQUEST = "Correct what was asked for; the registry's words say what is wrong."
# Statuses that no second attempt changes, and what to do about each. All others are worth another attempt.
REFUSALS = {
    301: "Give the address that the registry redirects to; credentials are not sent there unasked.",
    302: "Give the address that the registry redirects to; credentials are not sent there unasked.",
    307: "Give the address that the registry redirects to; credentials are not sent there unasked.",
    308: "Give the address that the registry redirects to; credentials are not sent there unasked.",
    400: CHECK_REQUEST,
    401: "Check the credentials in registry.basic.auth.user.info or registry.bearer.auth.token.",
    403: "Ask for the right to do this with the credentials of the source, or give others.",
    404: "Check the registry's address: it is that of its Confluent API, with the path below which /subjects is.",
    405: "Check the registry's address: it is that of its Confluent API, with the path below which /subjects is.",
    409: "Change the schema so that it is compatible with the versions of its subject, or the subject's level.",
    413: CHECK_REQUEST,
    415: CHECK_REQUEST,
    422: CHECK_REQUEST,
}


def is_absent(answer: Answer) -> bool:
    if answer.status != 404:
        return False
    try:
        return whole(member(object_of(orjson.loads(answer.body)), "error_code", int)) in ABSENT
    except ValueError:
        return False


def words(answer: Answer) -> str:
    """What the server says about itself, short and without what looks like a secret."""
    try:
        text = member(object_of(orjson.loads(answer.body)), "message", str)
    except ValueError:
        text = ""
    shown = masked(" ".join(text.split()))[:LONGEST_WORDS]
    return f"status {answer.status}" + (f", {shown}" if shown else "")


def texts(json: object) -> tuple[str, ...]:
    return tuple(checked(each, str) for each in checked(json, list))


def numbers(json: object) -> tuple[int, ...]:
    return tuple(whole(each) for each in checked(json, list))


def schema(json: object, schema_id: int) -> RegisteredSchema:
    given = object_of(json)
    # Registries leave out the type of Avro, their first and for long their only one.
    kind = member(given, "schemaType", str) if given.get("schemaType") is not None else AVRO
    references = given.get("references") or []
    return RegisteredSchema(
        schema_id,
        kind.upper(),
        member(given, "schema", str),
        tuple(_reference(each) for each in checked(references, list)),
    )


def subject_version(json: object, subject: str) -> tuple[SubjectVersion, RegisteredSchema]:
    given = object_of(json)
    place = SubjectVersion(subject, whole(given.get("version")), whole(given.get("id")))
    return place, schema(json, place.id)


def places(json: object, schema_id: int) -> tuple[SubjectVersion, ...]:
    return tuple(
        SubjectVersion(member(each, "subject", str), whole(each.get("version")), schema_id)
        for each in map(object_of, checked(json, list))
    )


def level(json: object) -> CompatibilityMode:
    # The name of the answer differs from that of the request in Confluent's own API.
    given = object_of(json)
    return CompatibilityMode(checked(given.get("compatibilityLevel", given.get("compatibility")), str).upper())


def judgement(json: object) -> Judgement:
    given = object_of(json)
    return Judgement(member(given, "is_compatible", bool), texts(given.get("messages") or []))


def registered_id(json: object) -> int:
    return whole(object_of(json).get("id"))


def _reference(json: object) -> Reference:
    given = object_of(json)
    return Reference(member(given, "name", str), member(given, "subject", str), whole(given.get("version")))


def object_of(json: object) -> dict[str, object]:
    return checked(json, dict)


def member(given: dict[str, object], name: str, kind: type[_T]) -> _T:
    return checked(given.get(name), kind)


def whole(value: object) -> int:
    if isinstance(value, bool):
        raise ValueError("true and false are no numbers")
    return checked(value, int)


def checked(value: object, kind: type[_T]) -> _T:
    if not isinstance(value, kind):
        raise ValueError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value
