"""Builds views, sinks and what hangs on them while the text is read: the query's text, options and EMIT.

A query is not understood here, only bounded; the engine gives it to Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.sql import statements as st
from laminae.sql.clauses import Clause, Span, by_kind, takes_children
from laminae.sql.syntax_errors import Fault
from laminae.sql.terminals import LEXEME_OR_TRIVIA
from laminae.sql.type_builder import TypeBuilder, offset_of

if TYPE_CHECKING:
    from lark import Token


@takes_children
class ViewBuilder(TypeBuilder):
    def query(self, token: Token) -> st.Query:
        return st.Query(_balanced(token))

    def create_view(
        self,
        or_replace: Token | None,
        if_not_exists: bool | None,
        name: Token,
        options: tuple[st.Option, ...] | None,
        query: Token,
        emit: st.Emit | None,
    ) -> st.CreateView:
        if or_replace is not None and if_not_exists:
            raise Fault(offset_of(or_replace), "OR REPLACE contradicts IF NOT EXISTS", "expected only one of them")
        return st.CreateView(
            str(name), _balanced(query), options or (), emit, or_replace is not None, bool(if_not_exists)
        )

    def create_sink(
        self, if_not_exists: bool | None, name: Token, relation: Token, options: tuple[st.Option, ...] | None
    ) -> st.CreateSink:
        return st.CreateSink(str(name), str(relation), options or (), bool(if_not_exists))

    def resume_view(self, name: Token) -> st.ResumeView:
        return st.ResumeView(str(name))

    def set_setting(self, name: Token, value: str) -> st.SetSetting:
        return st.SetSetting(_option_name(name), value)

    def options(self, *found: tuple[Token, st.Option]) -> tuple[st.Option, ...]:
        by_kind(Clause(f"option {option.name}", offset_of(name)) for name, option in found)
        return tuple(option for _, option in found)

    def option(self, name: Token, value: str) -> tuple[Token, st.Option]:
        return name, st.Option(_option_name(name), value)

    def option_string(self, value: Token) -> str:
        return str(value)

    def option_number(self, sign: Token | None, number: Token) -> str:
        return f"-{number}" if sign == "-" else str(number)

    def option_word(self, word: Token) -> str:
        return word.lower()

    setting_word = option_string

    def emit_changes(self) -> st.EmitChanges:
        return st.EmitChanges()

    def emit_on_update(self) -> st.EmitOnUpdate:
        return st.EmitOnUpdate()

    def emit_on_watermark(self) -> st.EmitOnWatermark:
        return st.EmitOnWatermark()

    def emit_on_window_close(self) -> st.EmitOnWindowClose:
        return st.EmitOnWindowClose()

    def emit_final(self) -> st.EmitFinal:
        return st.EmitFinal()

    def emit_every(self, span: Span) -> st.EmitEvery:
        if span.interval.microseconds <= 0:
            raise Fault(span.offset, "EMIT EVERY needs a time to wait", "expected an interval greater than 0")
        return st.EmitEvery(span.interval)


def _option_name(name: Token) -> str:
    if not name:
        raise Fault(offset_of(name), "an option name cannot be empty", "expected a name such as connector")
    if "\0" in name:
        raise Fault(offset_of(name), "an option name cannot hold the character U+0000", "remove it")
    return str(name)


def _balanced(query: Token) -> str:
    """The query's text. A ';' inside parentheses would have cut it in two, so every parenthesis must be closed."""
    if "(" not in query and ")" not in query:
        return str(query)
    opened: list[int] = []
    for lexeme in LEXEME_OR_TRIVIA.finditer(query):
        if lexeme.group() == "(":
            opened.append(lexeme.start())
        elif lexeme.group() == ")":
            if not opened:
                raise Fault(offset_of(query) + lexeme.start(), "this ')' closes nothing", "expected a '(' before it")
            opened.pop()
    if opened:
        raise Fault(offset_of(query) + opened[-1], "this '(' is never closed", "expected a ')' before the end")
    return str(query)
