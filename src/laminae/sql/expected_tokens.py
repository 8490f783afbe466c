"""The tokens that the parser would have accepted where it stopped, in readable form.

A state of the table lists more than can follow, because LALR merges contexts; each candidate is tried on the stack.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol

from laminae.sql.syntax_errors import Fault, found_at
from laminae.sql.terminals import GROUPS, LEXEME_OR_TRIVIA, QUERY_HEADS, TERMINALS, takes_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lark.parsers.lalr_parser_state import ParserState

    Table = Mapping[int, Mapping[str, tuple[object, "int | LalrRule"]]]

_UNTERMINATED = {"'": ("string", "quote"), '"': ("name", "quote"), "`": ("name", "backtick"), "/": ("comment", "*/")}
_PREFIXED = ("x'", "r'")
_DOTTED = "a single name is expected here, not a path with dots"


class LalrRule(Protocol):
    expansion: list[object]
    origin: object


def unexpected(text: str, offset: int, at_end: bool, state: ParserState[int]) -> Fault:
    if fault := _unterminated(text, offset):
        return fault
    acceptable = acceptable_terminals(state)
    return Fault(offset, _problem(text, offset, at_end, acceptable), f"expected {reading(acceptable)}")


def acceptable_terminals(state: ParserState[int]) -> set[str]:
    table: Table = state.parse_conf.states
    return {name for name in table[state.position] if name.isupper() and _shifts(table, list(state.state_stack), name)}


def reading(terminals: Iterable[str]) -> str:
    left = set(terminals)
    phrases: set[str] = set()
    for group, phrase in sorted(GROUPS.items(), key=lambda row: -len(row[0])):
        if group <= left:
            left -= group
            phrases.add(phrase)
    keywords = sorted(name for name in left if name not in TERMINALS)
    signs = sorted({TERMINALS[name].reading for name in left if name in TERMINALS} | phrases)
    words = [*keywords, *signs]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _shifts(table: Table, stack: list[int], terminal: str) -> bool:
    while (step := table[stack[-1]].get(terminal)) is not None:
        rule = step[1]
        if isinstance(rule, int):
            return True
        size = len(rule.expansion)
        if size:
            del stack[-size:]
        goto = table[stack[-1]][rule.origin.name][1]  # type: ignore[attr-defined] # lark's Rule is untyped
        assert isinstance(goto, int)
        stack.append(goto)
        if terminal == "$END" and len(stack) == 2:
            return True
    return False


def _unterminated(text: str, offset: int) -> Fault | None:
    at = offset + (text[offset : offset + 2].lower() in _PREFIXED)
    if at >= len(text) or text[at] not in _UNTERMINATED or LEXEME_OR_TRIVIA.match(text, at):
        return None
    what, closing = _UNTERMINATED[text[at]]
    return Fault(offset, f"the {what} that begins here is never closed", f"expected the closing {closing}")


def _problem(text: str, offset: int, at_end: bool, acceptable: set[str]) -> str:
    if at_end:
        return "the statement ends too early"
    if text[offset] == ".":
        return _DOTTED
    token = found_at(text, offset)
    if text[offset] == ";":
        return "the statement ends too early"
    if takes_literal(acceptable):
        return f"{token} is not a literal"
    return f"unexpected {token}{_suggestion(token, acceptable)}"


def _suggestion(found: str, acceptable: set[str]) -> str:
    words = [name for name in acceptable if name not in TERMINALS]
    close = get_close_matches(found.upper(), [*words, *(QUERY_HEADS if "QUERY" in acceptable else ())], 1, cutoff=0.7)
    return f", did you mean {close[0]}?" if close else ""
