"""What a registry holds, as values: schemas by id, their places under subjects, and what they refer to."""

from __future__ import annotations

from dataclasses import dataclass

AVRO = "AVRO"
# The registry's names of the kinds of schemas that it keeps, as a person knows them.
TYPE_NAMES = {AVRO: "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that one uses by `name`, and where it is registered."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """What an id stands for, for ever. `text` may use names that only its references define."""

    id: int
    type: str
    text: str
    references: tuple[Reference, ...] = ()

    @property
    def type_name(self) -> str:
        return TYPE_NAMES.get(self.type, self.type)


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A place of a schema. The version orders schemas; the id does not."""

    subject: str
    version: int
    id: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the registry would take a schema under a subject, and in its words why not."""

    is_compatible: bool
    reasons: tuple[str, ...] = ()
