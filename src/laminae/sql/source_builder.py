"""Builds statements about sources while the text is read: one method for each rule of grammar.lark.

It checks what needs only the text (a duplicate clause, a mode that does not exist). It has no access to the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from laminae.sql import statements as st
from laminae.sql.clauses import Clause, Column, Span, Typed, Value, by_kind, takes_children, value_of
from laminae.sql.literals import read_count
from laminae.sql.syntax_errors import Fault
from laminae.sql.type_builder import nullable, offset_of
from laminae.sql.view_builder import ViewBuilder

if TYPE_CHECKING:
    from lark import Token

COMPATIBILITY_MODES = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)

Names: TypeAlias = "tuple[Token, ...]"
Action: TypeAlias = Callable[..., st.AlterColumn]

_KINDS = {
    "SOURCE": st.ObjectKind.SOURCE,
    "SOURCES": st.ObjectKind.SOURCE,
    "MATERIALIZED": st.ObjectKind.VIEW,
    "VIEWS": st.ObjectKind.VIEW,
    "SINK": st.ObjectKind.SINK,
    "SINKS": st.ObjectKind.SINK,
}


@takes_children
class Builder(ViewBuilder):
    def statements(self, *found: st.Statement | None) -> tuple[st.Statement, ...]:
        return tuple(statement for statement in found if statement is not None)

    def explain_epoch(self, name: Token) -> st.ExplainEpoch:
        return st.ExplainEpoch(str(name))

    def explain(self, statement: st.Statement) -> st.Explain:
        return st.Explain(statement)

    def create_source(
        self,
        if_not_exists: bool | None,
        name: Token,
        elements: tuple[Column | Clause, ...] | None,
        options: tuple[st.Option, ...] | None,
    ) -> st.CreateSource:
        columns = [element for element in elements or () if isinstance(element, Column)]
        clauses = [element if isinstance(element, Clause) else element.key for element in elements or ()]
        clauses_by_kind = by_kind(clause for clause in clauses if clause is not None)
        return st.CreateSource(
            str(name),
            tuple(column.definition for column in columns),
            cast("st.Watermark | None", value_of(clauses_by_kind, "WATERMARK")),
            cast("st.Path | None", value_of(clauses_by_kind, "PRIMARY KEY")) or (),
            options or (),
            bool(if_not_exists),
        )

    def drop(self, kind: st.ObjectKind, if_exists: bool | None, name: Token, behaviour: Token | None) -> st.Drop:
        return st.Drop(kind, str(name), bool(if_exists), st.DropBehaviour[behaviour.type] if behaviour else None)

    def describe(self, name: Token) -> st.DescribeSource:
        return st.DescribeSource(str(name))

    def show(self, kind: Token) -> st.Show:
        return st.Show(_KINDS[kind.type])

    def kind(self, word: Token, *_: Token) -> st.ObjectKind:
        return _KINDS[word.type]

    def if_not_exists(self, _: Token) -> bool:
        return True

    if_exists = if_not_exists

    def elements(self, *found: Column | Clause) -> tuple[Column | Clause, ...]:
        return found

    def column(self, name: Token, typed: Typed, *clauses: Clause) -> Column:
        clauses_by_kind = by_kind(clauses)
        key = clauses_by_kind.get("PRIMARY KEY")
        definition = st.ColumnDef(str(name), typed.type, nullable(clauses_by_kind, typed), _default(clauses_by_kind))
        return Column(definition, key and key._replace(value=(str(name),)))

    def key(self, word: Token) -> Clause:
        return Clause("PRIMARY KEY", offset_of(word))

    def primary_key(self, word: Token, *names: Token) -> Clause:
        return Clause("PRIMARY KEY", offset_of(word), _plain(names))

    def watermark(self, word: Token, path: Names, again: Names, delay: Span | None) -> Clause:
        if path != again:
            raise Fault(
                offset_of(again[0]),
                "the watermark is taken from another column than it is for",
                f"expected {'.'.join(path)} again",
            )
        if delay is not None and delay.interval.microseconds < 0:
            raise Fault(delay.offset, "the delay of a watermark cannot be negative", "expected an interval from 0")
        interval = delay.interval if delay else st.Interval(0)
        return Clause("WATERMARK", offset_of(word), st.Watermark(_plain(path), interval))

    def add_column(
        self, source: Token, if_not_exists: bool | None, path: Names, typed: Typed, *clauses: Clause
    ) -> st.AddColumn:
        clauses_by_kind = by_kind(clauses)
        return st.AddColumn(
            str(source),
            _plain(path),
            typed.type,
            nullable(clauses_by_kind, typed),
            _default(clauses_by_kind),
            cast("st.Position | None", value_of(clauses_by_kind, "FIRST or AFTER")),
            bool(if_not_exists),
            "FORCE" in clauses_by_kind,
        )

    def drop_column(self, source: Token, if_exists: bool | None, path: Names, *clauses: Clause) -> st.DropColumn:
        clauses_by_kind = by_kind(clauses)
        return st.DropColumn(
            str(source), _plain(path), bool(if_exists), "RESTRICT" in clauses_by_kind, "FORCE" in clauses_by_kind
        )

    def alter_column(self, source: Token, path: Names, action: Action, force: Token | None) -> st.AlterColumn:
        return action(str(source), _plain(path), force=force is not None)

    def rename_column(self, source: Token, path: Names, new_name: Token, force: Token | None) -> st.RenameColumn:
        return st.RenameColumn(str(source), _plain(path), str(new_name), force is not None)

    def refresh_schema(self, source: Token) -> st.RefreshSchema:
        return st.RefreshSchema(str(source))

    def set_compatibility(self, source: Token, mode: Token) -> st.SetCompatibility:
        name = mode.upper()
        if name not in COMPATIBILITY_MODES:
            modes = f"{', '.join(COMPATIBILITY_MODES[:-1])} or {COMPATIBILITY_MODES[-1]}"
            raise Fault(offset_of(mode), f"there is no compatibility mode {name[:40]}", f"expected {modes}")
        return st.SetCompatibility(str(source), str(name))

    def set_options(self, source: Token, options: tuple[st.Option, ...]) -> st.SetOptions:
        return st.SetOptions(str(source), options)

    def confirm_change(self, source: Token, change: Token) -> st.ConfirmChange:
        return st.ConfirmChange(str(source), read_count(change, offset_of(change)))

    def reject_change(self, source: Token, change: Token) -> st.RejectChange:
        return st.RejectChange(str(source), read_count(change, offset_of(change)))

    def set_type(self, typed: Typed) -> Action:
        return partial(st.AlterColumnType, type=typed.type)

    def set_not_null(self) -> Action:
        return st.SetNotNull

    def drop_not_null(self) -> Action:
        return st.DropNotNull

    def set_default(self, value: Value) -> Action:
        return partial(st.SetDefault, default=st.Literal(value.value))

    def drop_default(self) -> Action:
        return st.DropDefault

    def move_first(self, _: Token) -> Action:
        return partial(st.MoveColumn, position=st.First())

    def move_after(self, _: Token, name: Token) -> Action:
        return partial(st.MoveColumn, position=st.After(str(name)))

    def first(self, word: Token) -> Clause:
        return Clause("FIRST or AFTER", offset_of(word), st.First())

    def after(self, word: Token, name: Token) -> Clause:
        return Clause("FIRST or AFTER", offset_of(word), st.After(str(name)))

    def flag(self, word: Token) -> Clause:
        return Clause(word.type, offset_of(word))

    def path(self, *names: Token) -> Names:
        return names


def _plain(names: Iterable[Token]) -> st.Path:
    return tuple(map(str, names))


def _default(given: dict[str, Clause]) -> st.Literal | None:
    return cast("st.Literal | None", value_of(given, "DEFAULT"))
