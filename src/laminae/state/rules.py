"""The rule book of state: what a schema may not do to rows that are already there, why, and what to do instead.

One table, for Spark's checkpoints and for serializers alike; the guide shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    FIELD_REMOVED = "field removed"
    FIELD_RENAMED = "field renamed"
    TYPE_CHANGED = "type changed"
    REQUIRED_ADDED = "NOT NULL field added"
    BECAME_REQUIRED = "nullable became NOT NULL"
    MAP_KEY_CHANGED = "map key changed"
    NAMES_REPEATED = "names repeated"
    POSITIONS_CHANGED = "positions changed"
    OPERATORS_CHANGED = "operators changed"
    PARTITIONS_CHANGED = "partitions changed"
    VARIABLE_REMOVED = "state variable removed"
    VARIABLE_CHANGED = "state variable changed"
    KEY_CHANGED = "key changed"
    AGGREGATES_CHANGED = "aggregates changed"
    AGGREGATES_UNKNOWN = "aggregates cannot be told apart"
    BUFFER_OPAQUE = "opaque aggregate buffer"
    FORMAT_REFUSED = "format not supported"
    PROVIDER_REFUSED = "state store not supported"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """`problem` may name `{old}` and `{new}`; the path of what it is about stands beside it."""

    problem: str
    remedy: str


RULES: dict[Rule, RuleRow] = {
    Rule.FIELD_REMOVED: RuleRow(
        "{old} is in the state and not in the new schema",
        "Keep the field in the input schema; drop it in a select after the stateful operator.",
    ),
    Rule.FIELD_RENAMED: RuleRow(
        "{old} is missing and {new} of the same type is new: a rename cannot be distinguished from a removal",
        "Keep the old name in the input schema; rename it in a select after the stateful operator.",
    ),
    Rule.TYPE_CHANGED: RuleRow(
        "the type changes from {old} to {new}",
        "Keep the old type, or add a nullable field of the new type beside it.",
    ),
    Rule.REQUIRED_ADDED: RuleRow(
        "{new} is new and NOT NULL, and existing rows have no value for it",
        "Make the new field nullable.",
    ),
    Rule.BECAME_REQUIRED: RuleRow(
        "it was nullable and becomes NOT NULL, and existing rows may hold NULL",
        "Leave it nullable; filter NULL after the stateful operator.",
    ),
    Rule.MAP_KEY_CHANGED: RuleRow(
        "the key of a map changes from {old} to {new}: keys are found by their bytes",
        "Keep the type of the key as it is; put new fields into the value.",
    ),
    Rule.NAMES_REPEATED: RuleRow(
        "the name {old} occurs more than once, so fields cannot be matched by name",
        "Give each field a name of its own, or leave the fields of this struct as they are.",
    ),
    Rule.POSITIONS_CHANGED: RuleRow(
        "the state has no names, so fields are matched by position, and {old} becomes {new}",
        "Keep the positions of the fields and append nullable fields at the end.",
    ),
    Rule.OPERATORS_CHANGED: RuleRow(
        "the stateful operators were {old} and are {new}",
        "Keep the stateful operators of the query and their order; give another query a checkpoint of its own.",
    ),
    Rule.PARTITIONS_CHANGED: RuleRow(
        "the state has {old} partitions, the query has {new}",
        "Leave spark.sql.shuffle.partitions as it was: the number is fixed when a checkpoint is made.",
    ),
    Rule.VARIABLE_REMOVED: RuleRow(
        "the state variable {old} is in the checkpoint and not in the new processor",
        "Keep creating the state variable in init(); it need not be used.",
    ),
    Rule.VARIABLE_CHANGED: RuleRow(
        "the state variable was {old} and is {new}",
        "Give the changed variable a name of its own and keep the old one.",
    ),
    Rule.KEY_CHANGED: RuleRow(
        "the key of this operator changes from {old} to {new}",
        "Keep the grouping or join key as it is; reordering fields and new fields inside a struct of a "
        "grouping key are supported for aggregations and dropDuplicates.",
    ),
    Rule.AGGREGATES_CHANGED: RuleRow(
        "the aggregates were {old} and are {new}",
        "Keep every aggregate that has state, in any order; with --add-aggregates (add_aggregates=True) new ones "
        "are allowed and start empty.",
    ),
    Rule.AGGREGATES_UNKNOWN: RuleRow(
        "{new} have buffers of the same shape, which a checkpoint does not identify: a reordered aggregate "
        "would continue with the value of another",
        "Pass the original query: --from-query old_app.py:build (from_build=...); or assert that the aggregates and "
        "their order have not changed: --same-aggregates (same_aggregates=True).",
    ),
    Rule.BUFFER_OPAQUE: RuleRow(
        "the buffer of {new} is opaque bytes, whose element type is not in the checkpoint",
        "Pass the original query: --from-query old_app.py:build (from_build=...); or assert that the aggregates and "
        "what they collect have not changed: --same-aggregates (same_aggregates=True).",
    ),
    Rule.FORMAT_REFUSED: RuleRow(
        "{old}",
        "{new}",
    ),
    Rule.PROVIDER_REFUSED: RuleRow(
        "the state store provider {old} is not known",
        "Use Spark's RocksDB or HDFS-backed state store.",
    ),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One refusal: which rule, at which path, in words, with what to do."""

    rule: Rule
    path: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}. {self.remedy}"


def reason(rule: Rule, path: str, old: object = "", new: object = "") -> Reason:
    row = RULES[rule]
    return Reason(rule, path, row.problem.format(old=old, new=new), row.remedy.format(old=old, new=new))
