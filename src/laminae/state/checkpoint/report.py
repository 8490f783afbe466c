"""The result of a check: how the rows of each column family are migrated, all reasons against it, and notes.

The rewrite executes the same plans that the report prints, so a dry run cannot differ from the real run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.state.compatibility import Kind
from laminae.state.mapping import FieldLine, Mapping, field_lines

if TYPE_CHECKING:
    from collections.abc import Mapping as Table

    from laminae.state.rules import Reason
    from laminae.state.types import Struct


@dataclass(frozen=True, slots=True)
class Side:
    """Keys or values of a family: old and new row type, and the mapping between them (None: the bytes stay)."""

    old: Struct
    new: Struct
    mapping: Mapping | None = None


@dataclass(frozen=True, slots=True)
class FamilyPlan:
    """One column family. `rows` is None until they are counted; a new family has no old rows."""

    operator: int
    operator_name: str
    store: str
    family: str
    key: Side
    value: Side
    rows: int | None = None

    @property
    def path(self) -> str:
        return path_of(self.operator, self.operator_name, self.store, self.family)

    @property
    def changes(self) -> bool:
        return self.key.mapping is not None or self.value.mapping is not None

    @property
    def fields(self) -> tuple[FieldLine, ...]:
        return tuple(
            line
            for name, side in (("key", self.key), ("value", self.value))
            for line in field_lines(side.old, side.new, side.mapping, name)
        )


def path_of(operator: int, name: str, store: str, family: str) -> str:
    inner = "" if family == store or family == "default" else f"/{family}"
    return f"operator {operator} ({name})/{store}{inner}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The verdict on one checkpoint and one query. `notes` are facts that the user should know, but no obstacles."""

    checkpoint: str
    batch: int
    families: tuple[FamilyPlan, ...]
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        if self.reasons:
            return Kind.INCOMPATIBLE
        return Kind.AFTER_MIGRATION if any(plan.changes for plan in self.families) else Kind.AS_IS

    @property
    def is_compatible(self) -> bool:
        return not self.reasons

    @property
    def rows(self) -> int:
        return sum(plan.rows or 0 for plan in self.families)

    def changed(self) -> str:
        """The fields that change, in one line."""
        lines = [
            f"{plan.path}.{line.path}: {line.origin}"
            for plan in self.families
            for line in plan.fields
            if line.origin != "kept"
        ]
        return "; ".join(lines[:5]) + (f"; and {len(lines) - 5} more" if len(lines) > 5 else "")

    def to_dict(self) -> dict[str, object]:
        return {
            "checkpoint": self.checkpoint,
            "batch": self.batch,
            "kind": self.kind.value,
            "stores": [_family_dict(plan) for plan in self.families],
            "reasons": [
                {"rule": reason.rule.value, "path": reason.path, "problem": reason.problem, "remedy": reason.remedy}
                for reason in self.reasons
            ],
            "notes": list(self.notes),
        }


def _family_dict(plan: FamilyPlan) -> Table[str, object]:
    return {
        "operator": plan.operator,
        "operator_name": plan.operator_name,
        "store": plan.store,
        "family": plan.family,
        "rows": plan.rows,
        "fields": [{"path": line.path, "origin": line.origin} for line in plan.fields],
    }
