"""What a task tells the driver: rows of their own in its output, which the stages behind pass on.

An accumulator would count an attempt that is thrown away; a row comes from the attempt that counts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

NOTE = "_note"
"""The column of a note's text; NULL in every row that is data."""


@dataclass(frozen=True, slots=True)
class StateNote:
    """A shard of an operator has new state.

    `moved` rows lack values that they had under another key: the job is to be done with all events at hand.
    """

    owner: int
    operator: str
    shard: int
    manifest: str
    anomalies: int = 0
    recovered: int = 0
    dropped: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class ChangesNote:
    """A file of an owner's changelog."""

    owner: int
    file: str
    rows: int


@dataclass(frozen=True, slots=True)
class FailureNote:
    """A view cannot take the epoch. The others can, so nothing is raised in the task."""

    owner: int
    code: str
    problem: str


@dataclass(frozen=True, slots=True)
class LateNote:
    """Rows came for windows of a view that are closed. Which, a second small job finds out."""

    owner: int


Note = StateNote | ChangesNote | FailureNote | LateNote
_KINDS: dict[str, type[Note]] = {
    "state": StateNote,
    "changes": ChangesNote,
    "failure": FailureNote,
    "late": LateNote,
}


def note_text(note: Note) -> str:
    kind = next(name for name, made in _KINDS.items() if isinstance(note, made))
    return json.dumps({"kind": kind, **asdict(note)})


def note_of(text: str) -> Note:
    found = json.loads(text)
    return _KINDS[found.pop("kind")](**found)
