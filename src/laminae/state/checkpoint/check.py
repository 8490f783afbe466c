"""Whether a changed query can continue with the state of a checkpoint: a pure function of the two descriptions.

Fields are matched by name inside structs, buffers by the expression of their aggregate, operators by id and name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.state.checkpoint.buffers import Assumptions, Buffers, fits
from laminae.state.checkpoint.model import (
    ENCODING,
    HDFS,
    JOIN_FORMAT,
    PARTITIONS,
    ROCKSDB,
    ROW_CHECKSUM,
    Checkpoint,
    Family,
    Operator,
    Store,
)
from laminae.state.checkpoint.operators import OPERATORS, KeyChange, OperatorRow
from laminae.state.checkpoint.report import CheckReport, FamilyPlan, Side, path_of
from laminae.state.compatibility import resolve
from laminae.state.mapping import Added, StructMapping
from laminae.state.rules import Reason, Rule, reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laminae.state.checkpoint.aggregates import QueryNote

JOIN = "symmetricHashJoin"
REFUSED_JOIN_FORMAT = "4"


@dataclass(frozen=True, slots=True)
class Planned:
    """What Spark wrote when it planned the new query: its operators, aggregates and requested number of partitions."""

    operators: tuple[Operator, ...]
    note: QueryNote
    partitions: str | None = None


def check(old: Checkpoint, new: Planned, ran: QueryNote | None, assumed: Assumptions) -> CheckReport:
    """The report. `ran` describes the aggregates of the query that wrote the checkpoint, if they are known."""
    walk = _Check(new, ran, assumed)
    walk.formats(old)
    if [operator.signature for operator in old.operators] != [operator.signature for operator in new.operators]:
        before, after = _listed(old.operators), _listed(new.operators)
        walk.reasons.append(reason(Rule.OPERATORS_CHANGED, "operators", before, after))
    else:
        for before_one, after_one in zip(old.operators, new.operators, strict=True):
            walk.operator(before_one, after_one)
    return CheckReport(old.location, old.batch, tuple(walk.plans), tuple(walk.reasons), tuple(walk.notes))


@dataclass(slots=True)
class _Check:
    new: Planned
    ran: QueryNote | None
    assumed: Assumptions
    plans: list[FamilyPlan] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def formats(self, old: Checkpoint) -> None:
        """Refuse formats that cannot be rewritten, whatever the schemas are."""
        if old.provider not in (ROCKSDB, HDFS):
            self.reasons.append(reason(Rule.PROVIDER_REFUSED, "state store", old.provider))
        if old.provider == HDFS:
            self.notes.append("the state store is HDFS-backed and is converted to RocksDB")
        for problem, remedy in _refused_formats(old):
            self.reasons.append(reason(Rule.FORMAT_REFUSED, "state store", problem, remedy))
        requested, has = self.new.partitions, old.setting(PARTITIONS)
        if requested is not None and has and requested != has:
            self.reasons.append(reason(Rule.PARTITIONS_CHANGED, PARTITIONS, has, requested))

    def operator(self, old: Operator, new: Operator) -> None:
        row = OPERATORS.get(old.name)
        path = f"operator {old.id} ({old.name})"
        if row is None:
            known = ", ".join(sorted({supported.label for supported in OPERATORS.values()}))
            self.reasons.append(
                reason(Rule.FORMAT_REFUSED, path, f"the operator {old.name} is not supported", f"These are: {known}.")
            )
            return
        if old.metadata_format != new.metadata_format:
            problem = f"the metadata of the operator is {old.metadata_format} and becomes {new.metadata_format}"
            self.reasons.append(reason(Rule.FORMAT_REFUSED, path, problem, "Keep the state formats of the checkpoint."))
            return
        self._variables(old, new, path)
        for before, after in zip(old.stores, new.stores, strict=True):
            if before.partitions != after.partitions:
                self.reasons.append(reason(Rule.PARTITIONS_CHANGED, path, before.partitions, after.partitions))
            self._store(old, row, before, after)

    def _variables(self, old: Operator, new: Operator, path: str) -> None:
        after = {new_variable.name: new_variable for new_variable in new.variables}
        for variable in old.variables:
            now = after.pop(variable.name, None)
            if now is None:
                self.reasons.append(reason(Rule.VARIABLE_REMOVED, f"{path}.{variable.name}", variable.name))
            elif now != variable:
                was, becomes = _variable_text(variable.kind, variable.has_ttl), _variable_text(now.kind, now.has_ttl)
                self.reasons.append(reason(Rule.VARIABLE_CHANGED, f"{path}.{variable.name}", was, becomes))
        self.notes += [f"{path}: the state variable {name} is new and starts empty" for name in after]

    def _store(self, operator: Operator, row: OperatorRow, old: Store, new: Store) -> None:
        removed = {variable.name for variable in operator.variables} - {
            variable.name for variable in self._new(operator).variables
        }
        for before in old.families:
            path = path_of(operator.id, operator.name, old.name, before.name)
            after = new.family(before.name)
            if after is None:
                if not any(name in before.name for name in removed):
                    self.reasons.append(reason(Rule.VARIABLE_REMOVED, path, before.name))
                continue
            key = self._key(row, before, after, path)
            value = self._value(operator, row, before, after, path)
            self.plans.append(FamilyPlan(operator.id, operator.name, old.name, before.name, key, value))

    def _new(self, operator: Operator) -> Operator:
        return next(candidate for candidate in self.new.operators if candidate.id == operator.id)

    def _key(self, row: OperatorRow, old: Family, new: Family, path: str) -> Side:
        resolution = resolve(old.key, new.key, f"{path}.key")
        added = isinstance(resolution.mapping, StructMapping) and any(
            isinstance(s, Added) for s in resolution.mapping.sources
        )
        is_fixed = row.key is KeyChange.NOTHING
        if (is_fixed and not resolution.is_compatible_as_is) or (row.key is KeyChange.INSIDE and added):
            self.reasons.append(reason(Rule.KEY_CHANGED, f"{path}.key", old.key, new.key))
        elif not is_fixed:
            self.reasons += resolution.reasons
        return Side(old.key, new.key, resolution.mapping)

    def _value(self, operator: Operator, row: OperatorRow, old: Family, new: Family, path: str) -> Side:
        if row.aggregates:
            known = self.ran.of(operator.id) if self.ran is not None else None
            usable = known if known and fits(known, old.value) else None
            buffers = Buffers(
                f"{path}.value", old.value, new.value, self.new.note.of(operator.id), usable, self.assumed
            )
            side = buffers.side()
            self.reasons += buffers.reasons
            self.notes += buffers.notes
            return side
        resolution = resolve(old.value, new.value, f"{path}.value")
        self.reasons += resolution.reasons
        return Side(old.value, new.value, resolution.mapping)


def _refused_formats(old: Checkpoint) -> Iterable[tuple[str, str]]:
    encoding = old.setting(ENCODING, "unsaferow").casefold()
    if encoding != "unsaferow":
        yield f"state rows are encoded as {encoding}", "Spark evolves Avro-encoded state itself: start the query on it."
    has_join = any(operator.name == JOIN for operator in old.operators)
    if has_join and old.setting(JOIN_FORMAT) == REFUSED_JOIN_FORMAT:
        yield (
            f"the join keeps its state in format {REFUSED_JOIN_FORMAT}, which Spark's rewriter breaks",
            f"Run joins with {JOIN_FORMAT} = 3 or 2; this checkpoint cannot be migrated.",
        )
    if old.setting(ROW_CHECKSUM, "false").casefold() == "true":
        yield (
            f"rows carry checksums ({ROW_CHECKSUM})",
            f"Run queries whose state is to be migrated without {ROW_CHECKSUM}.",
        )


def _variable_text(kind: str, has_ttl: bool) -> str:
    return f"{kind} with TTL" if has_ttl else kind


def _listed(operators: Iterable[Operator]) -> str:
    return (
        ", ".join(
            f"{operator.id} {operator.name} ({', '.join(s.name for s in operator.stores)})" for operator in operators
        )
        or "none"
    )
