"""May this change happen? Modes, the two rule sets as one literal table, and the verdict with its reasons.

The table is shown in docs/reference from `RULES` itself. Nothing here applies a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, TypeVar, assert_never

import pyarrow as pa

from laminae.errors import InvalidOption
from laminae.schema.arguments import require, require_each
from laminae.schema.change import (
    ColumnAdded,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    DefaultChanged,
    NullabilityChanged,
    SchemaChange,
    TypeChanged,
    TypeNarrowed,
    TypeWidened,
)
from laminae.schema.column import Columns, columns_of
from laminae.schema.diff import diff_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_E = TypeVar("_E", bound=StrEnum)


class CompatibilityMode(StrEnum):
    NONE = "NONE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @classmethod
    def parse(cls, text: str) -> CompatibilityMode:
        return _parse(cls, text, "compatibility")

    @property
    def base(self) -> CompatibilityMode:
        """The same mode against the latest version alone."""
        return CompatibilityMode(self.removesuffix("_TRANSITIVE"))

    @property
    def is_transitive(self) -> bool:
        return self.endswith("_TRANSITIVE")

    @property
    def requires_backward(self) -> bool:
        return self.base in (CompatibilityMode.BACKWARD, CompatibilityMode.FULL)

    @property
    def requires_forward(self) -> bool:
        return self.base in (CompatibilityMode.FORWARD, CompatibilityMode.FULL)


class RuleSet(StrEnum):
    SEED = "seed"
    CONFLUENT = "confluent"

    @classmethod
    def parse(cls, text: str) -> RuleSet:
        return _parse(cls, text, "compatibility_rules")

    @property
    def other(self) -> RuleSet:
        return RuleSet.CONFLUENT if self is RuleSet.SEED else RuleSet.SEED


class Answer(Enum):
    OK = "ok"
    CONFIRM = "confirm"
    NO = "no"


class Rule(StrEnum):
    ADD_OPTIONAL = "add, nullable or with default"
    ADD_REQUIRED = "add, NOT NULL without default"
    DROP_OPTIONAL = "drop, nullable or with default"
    DROP_REQUIRED = "drop, required"
    RENAME = "rename with identity"
    RENAME_WITHOUT_IDENTITY = "rename without identity"
    WIDEN = "widen type"
    WIDEN_PHYSICAL = "physical-only widen"
    NARROW = "narrow type"
    RETYPE = "unrelated type"
    REQUIRE = "NULL -> NOT NULL"
    RELAX = "NOT NULL -> NULL"
    DEFAULT = "default changed"
    MOVE = "reorder"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """Answers of one rule under BACKWARD, FORWARD, FULL and NONE, why a mode refuses it, and what to do instead."""

    backward: Answer
    forward: Answer
    full: Answer
    none: Answer
    why: str
    remedy: str

    def answer(self, mode: CompatibilityMode) -> Answer:
        return ANSWERS[mode](self)


ANSWERS: dict[CompatibilityMode, Callable[[RuleRow], Answer]] = {
    CompatibilityMode.NONE: attrgetter("none"),
    CompatibilityMode.BACKWARD: attrgetter("backward"),
    CompatibilityMode.FORWARD: attrgetter("forward"),
    CompatibilityMode.FULL: attrgetter("full"),
    CompatibilityMode.BACKWARD_TRANSITIVE: attrgetter("backward"),
    CompatibilityMode.FORWARD_TRANSITIVE: attrgetter("forward"),
    CompatibilityMode.FULL_TRANSITIVE: attrgetter("full"),
}

_OK, _NO, _CONFIRM = Answer.OK, Answer.NO, Answer.CONFIRM

_COMMON: dict[Rule, RuleRow] = {
    Rule.ADD_OPTIONAL: RuleRow(_OK, _OK, _OK, _OK, "every record has a value for the column", ""),
    Rule.ADD_REQUIRED: RuleRow(
        _NO,
        _OK,
        _NO,
        _CONFIRM,
        "old records have no value for the column",
        "Add a DEFAULT, or omit NOT NULL.",
    ),
    Rule.RENAME: RuleRow(_OK, _OK, _OK, _OK, "the column keeps its id", ""),
    Rule.RENAME_WITHOUT_IDENTITY: RuleRow(
        _NO,
        _NO,
        _NO,
        _CONFIRM,
        "it looks like a rename, but without an id the old values would be lost",
        "Use ALTER SOURCE ... RENAME COLUMN, or give the field an id or an alias, so that the column keeps its values.",
    ),
    Rule.WIDEN: RuleRow(
        _OK,
        _NO,
        _NO,
        _OK,
        "readers of the old type cannot hold every new value",
        "Add a column of the wider type instead, or use a BACKWARD mode.",
    ),
    Rule.WIDEN_PHYSICAL: RuleRow(_OK, _OK, _OK, _OK, "the values are the same in another layout", ""),
    Rule.NARROW: RuleRow(
        _NO,
        _NO,
        _NO,
        _NO,
        "stored values may not fit the new type",
        "Add a column of the new type and convert the values in a view.",
    ),
    Rule.RETYPE: RuleRow(
        _NO,
        _NO,
        _NO,
        _CONFIRM,
        "old values have no meaning in the new type",
        "Add a column of the new type under another name, and drop this one when it is no longer read.",
    ),
    Rule.REQUIRE: RuleRow(
        _NO,
        _OK,
        _NO,
        _CONFIRM,
        "old records may hold NULL",
        "Keep the column nullable, or filter NULLs in a view.",
    ),
    Rule.RELAX: RuleRow(
        _OK,
        _NO,
        _NO,
        _OK,
        "readers of the old schema do not expect NULL",
        "Keep NOT NULL and give the column a DEFAULT, or use a BACKWARD mode.",
    ),
    Rule.DEFAULT: RuleRow(_OK, _OK, _OK, _OK, "stored values do not change", ""),
    Rule.MOVE: RuleRow(_OK, _OK, _OK, _OK, "columns are matched by identity, not by position", ""),
}

_READERS_BREAK = "readers of the column would fail"
_KEEP = "Keep the column until it is no longer read, or use a FORWARD mode."

RULES: dict[RuleSet, dict[Rule, RuleRow]] = {
    RuleSet.SEED: {
        **_COMMON,
        Rule.DROP_OPTIONAL: RuleRow(_NO, _OK, _NO, _CONFIRM, _READERS_BREAK, _KEEP),
        Rule.DROP_REQUIRED: RuleRow(_NO, _OK, _NO, _CONFIRM, _READERS_BREAK, _KEEP),
    },
    RuleSet.CONFLUENT: {
        **_COMMON,
        Rule.DROP_OPTIONAL: RuleRow(_OK, _OK, _OK, _CONFIRM, "its values would no longer be read", _KEEP),
        Rule.DROP_REQUIRED: RuleRow(
            _OK,
            _NO,
            _NO,
            _CONFIRM,
            "readers of the old schema have no value for the column",
            "Give the column a DEFAULT or make it nullable first, then drop it.",
        ),
    },
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one change is not simply allowed. `version` is the 1-based version of the history it was judged against."""

    path: str
    rule: str
    text: str
    remedy: str
    version: int
    change: SchemaChange | None = None
    other_rules: str | None = None

    def __str__(self) -> str:
        against = f" (against version {self.version})" if self.version else ""
        other = f" {self.other_rules}" if self.other_rules else ""
        return f"{self.path}: {self.rule}: {self.text}{against}.{other} {self.remedy}"


@dataclass(frozen=True, slots=True)
class EvolutionVerdict:
    """All changes against the latest version, and one reason per offending change."""

    changes: tuple[SchemaChange, ...] = ()
    reasons: tuple[Reason, ...] = ()
    is_compatible: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Compatible(EvolutionVerdict):
    is_compatible: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class RequiresConfirmation(EvolutionVerdict):
    """Allowed if the user confirms it: the change can lose data."""


@dataclass(frozen=True, slots=True)
class Incompatible(EvolutionVerdict):
    """Refused under this mode."""


def evaluate_evolution(
    new: pa.Schema, history: Sequence[pa.Schema], mode: str = "BACKWARD", rules: str = "seed"
) -> EvolutionVerdict:
    """Judge `new` against `history` (oldest first): against its last version, or every version if transitive."""
    require("evaluate_evolution", pa.Schema, new=new)
    require_each("evaluate_evolution", pa.Schema, "history", history)
    history = tuple(history)
    judged, rule_set = CompatibilityMode.parse(mode), RuleSet.parse(rules)
    proposed = columns_of(new)
    if not history:
        return Compatible()
    return judge(diff_columns(columns_of(history[-1]), proposed), proposed, history, judged, rule_set)


def judge(
    changes: tuple[SchemaChange, ...],
    proposed: Columns,
    history: Sequence[pa.Schema],
    mode: CompatibilityMode,
    rules: RuleSet,
) -> EvolutionVerdict:
    """The verdict on `changes` against the last version, and on `proposed` against every earlier one if transitive."""
    judgements = list(_judge(changes, mode, rules, len(history)))
    if mode.is_transitive:
        seen: set[Columns] = {columns_of(history[-1])}
        for version, schema in enumerate(history[:-1], start=1):
            earlier = columns_of(schema)
            if earlier not in seen:
                seen.add(earlier)
                judgements.extend(_judge(diff_columns(earlier, proposed), mode, rules, version))
    return verdict_of(changes, judgements)


def verdict_of(changes: tuple[SchemaChange, ...], judgements: Sequence[tuple[Answer, Reason]]) -> EvolutionVerdict:
    if not judgements:
        return Compatible(changes)
    reasons = tuple([reason for _, reason in judgements])
    refused = any(answer is Answer.NO for answer, _ in judgements)
    return Incompatible(changes, reasons) if refused else RequiresConfirmation(changes, reasons)


def rule_of(change: SchemaChange) -> Rule | None:
    """The row of the table that judges this change; None for an add that its possible rename already answers."""
    match change:
        case ColumnAdded():
            if change.possible_rename_of is not None:
                return None
            return Rule.ADD_OPTIONAL if change.is_lossless else Rule.ADD_REQUIRED
        case ColumnDropped():
            if change.possible_rename_to is not None:
                return Rule.RENAME_WITHOUT_IDENTITY
            return Rule.DROP_REQUIRED if change.is_required else Rule.DROP_OPTIONAL
        case ColumnRenamed():
            return Rule.RENAME
        case TypeWidened():
            return Rule.WIDEN_PHYSICAL if change.is_physical else Rule.WIDEN
        case TypeNarrowed():
            return Rule.NARROW
        case TypeChanged():
            return Rule.RETYPE
        case NullabilityChanged():
            return Rule.RELAX if change.nullable else Rule.REQUIRE
        case DefaultChanged():
            return Rule.DEFAULT
        case ColumnMoved():
            return Rule.MOVE
        case _:
            assert_never(change)


def _judge(
    changes: tuple[SchemaChange, ...], mode: CompatibilityMode, rules: RuleSet, version: int
) -> Iterator[tuple[Answer, Reason]]:
    for change in changes:
        rule = rule_of(change)
        if rule is None:
            continue
        row = RULES[rules][rule]
        answer = row.answer(mode)
        if answer is Answer.OK:
            continue
        allowed_elsewhere = RULES[rules.other][rule].answer(mode) is Answer.OK
        other = f"compatibility_rules = '{rules.other}' would allow it." if allowed_elsewhere else None
        text = row.why
        if isinstance(change, ColumnDropped) and change.possible_rename_to is not None:
            text = f"possible rename to {change.possible_rename_to}: {text}"
        yield answer, Reason(change.column_name, str(rule), text, row.remedy, version, change, other)


def _parse(enum: type[_E], text: str, option: str) -> _E:
    if isinstance(text, enum):
        return text
    member: _E | None = _members(enum).get(text.casefold()) if isinstance(text, str) else None
    if member is not None:
        return member
    problem, advice = f"{text!r} is not one of its values", f"Use one of {', '.join(enum)}."
    raise InvalidOption(option=option, owner="the source", problem=problem, advice=advice)


@cache
def _members(enum: type[_E]) -> dict[str, _E]:
    return {member.casefold(): member for member in enum}
