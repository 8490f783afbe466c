"""The content of a registry as values: schemas by id, their versions under subjects, and their references."""

from __future__ import annotations

from dataclasses import dataclass

AVRO = "AVRO"
# The registry's schema types, and their usual names.
TYPE_NAMES = {AVRO: "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that is used by `name`, and where it is registered."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """The schema of an id, which is immutable. `text` may use names that only its references define."""

    id: int
    type: str
    text: str
    references: tuple[Reference, ...] = ()

    @property
    def type_name(self) -> str:
        return TYPE_NAMES.get(self.type, self.type)


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a schema under a subject. Versions order schemas; ids do not."""

    subject: str
    version: int
    id: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the registry would accept a schema under a subject, and its reasons if not."""

    is_compatible: bool
    reasons: tuple[str, ...] = ()
