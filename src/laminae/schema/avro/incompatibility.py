"""What can keep a reader from reading a writer's data: the six kinds Avro names, each with its text and remedy.

The docs page is made from `KINDS`. The values are found in `resolution` and located in `causes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class IncompatibilityKind(StrEnum):
    NAME_MISMATCH = "NAME_MISMATCH"
    FIXED_SIZE_MISMATCH = "FIXED_SIZE_MISMATCH"
    MISSING_ENUM_SYMBOLS = "MISSING_ENUM_SYMBOLS"
    READER_FIELD_MISSING_DEFAULT_VALUE = "READER_FIELD_MISSING_DEFAULT_VALUE"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    MISSING_UNION_BRANCH = "MISSING_UNION_BRANCH"


@dataclass(frozen=True, slots=True)
class KindRow:
    """`{reader}` and `{writer}` are what the two schemas have at the place."""

    text: str
    remedy: str


KINDS: dict[IncompatibilityKind, KindRow] = {
    IncompatibilityKind.NAME_MISMATCH: KindRow(
        "the reader's {reader} is not the writer's {writer}, by name or by alias",
        "Keep the name, or list the writer's full name in the reader's aliases.",
    ),
    IncompatibilityKind.FIXED_SIZE_MISMATCH: KindRow(
        "the reader's fixed has {reader} bytes, the writer's has {writer}",
        "Keep the size; put values of another size into a new field with a fixed of another name.",
    ),
    IncompatibilityKind.MISSING_ENUM_SYMBOLS: KindRow(
        "the reader's enum {reader} has no default and lacks {writer}",
        "Keep every symbol in the reader's enum, or give that enum a default symbol.",
    ),
    IncompatibilityKind.READER_FIELD_MISSING_DEFAULT_VALUE: KindRow(
        "the reader's field {reader} has no default, and the writer's {writer} has no such field",
        "Give the reader's field a default, or list the writer's name for it in its aliases.",
    ),
    IncompatibilityKind.TYPE_MISMATCH: KindRow(
        "the reader expects {reader}, the writer has {writer}, which cannot be promoted to it",
        "Keep the type or widen it (int, long, float, double; bytes and string); otherwise add a new field.",
    ),
    IncompatibilityKind.MISSING_UNION_BRANCH: KindRow(
        "the reader has {reader}, of which no branch reads the writer's {writer}",
        "Keep the branch in the reader's union, or make the branch that should match compatible.",
    ),
}


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One cause. `path` locates it in the reader's JSON as Java does, `field_path` names the field for a person."""

    kind: IncompatibilityKind
    path: str
    field_path: str
    text: str

    @property
    def remedy(self) -> str:
        return KINDS[self.kind].remedy
