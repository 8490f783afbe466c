"""Token-level parsing of expressions, and the parts kept as text: names, types, intervals and paths of a VARIANT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import TokenType, exp
from sqlglot.parsers.spark import SparkParser

from laminae.views.sql.grammar import LITERALS, UNITS
from laminae.views.sql.verbatim import joined, literal

if TYPE_CHECKING:
    from sqlglot import Token


class WordParser(SparkParser):
    """Consumes the tokens of sqlglot's parser."""

    def _word(self, *words: str) -> bool:
        """Whether the next token is one of these keywords or signs."""
        token = self._curr
        return bool(token) and token.token_type not in (*LITERALS, TokenType.IDENTIFIER) and token.text.upper() in words

    def _take(self, *words: str) -> bool:
        if not self._word(*words):
            return False
        self._advance()
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self.raise_error(f"Expected {sign}")

    def _needed(self, operand: exp.Expr | None) -> exp.Expr:
        if operand is None:
            self.raise_error("Expected an expression")
        assert operand is not None  # raise_error always raises here
        return operand

    def _is_name(self, token: Token) -> bool:
        if token.token_type is TokenType.IDENTIFIER:
            return True
        return token.token_type is not TokenType.STRING and token.text.isidentifier()

    def _is_next_adjacent(self) -> bool:
        return bool(self._next) and self._next.start == self._curr.end + 1

    def _identifier(self) -> exp.Identifier:
        token = self._curr
        self._advance()
        name = exp.Identifier(this=token.text, quoted=token.token_type is TokenType.IDENTIFIER)
        name.update_positions(token)
        return name

    def _name_text(self) -> str:
        token = self._curr
        if not token or not self._is_name(token):
            self.raise_error("Expected a name")
        self._advance()
        return f"`{token.text.replace('`', '``')}`" if token.token_type is TokenType.IDENTIFIER else token.text

    def _type_text(self) -> str:
        """A data type, kept as written."""
        words: list[str] = []
        depth = 0
        while self._curr:
            text = self._curr.text
            if self._curr.token_type is TokenType.IDENTIFIER:
                text = f"`{text.replace('`', '``')}`"
            if depth == 0 and words and not self._continues_type(words):
                break
            depth += text in ("(", "<")
            depth -= text in (")", ">")
            if depth < 0:
                break
            words.append(text)
            self._advance()
        if not words:
            self.raise_error("Expected a type")
        return joined(words)

    def _continues_type(self, words: list[str]) -> bool:
        last, text = words[-1].upper(), self._curr.text.upper()
        if text in ("(", "<"):
            return last.isidentifier()
        if last in ("TIMESTAMP", "TIME") and text in ("WITH", "WITHOUT"):
            return True
        if last in ("WITH", "WITHOUT") and text in ("LOCAL", "TIME"):
            return True
        if (last, text) in (("LOCAL", "TIME"), ("TIME", "ZONE"), ("DOUBLE", "PRECISION"), ("STRING", "COLLATE")):
            return True
        is_interval = words[0].upper() == "INTERVAL"
        return last == "COLLATE" or (
            is_interval and (text in UNITS or (text == "TO" and last in UNITS) or last == "TO")
        )

    def _path_text(self) -> str:
        """A path `:a.b[0]['c']` into a VARIANT."""
        words = [":"]
        self._advance()
        while self._curr:
            if words[-1] in (":", ".") or words[-1].endswith("[") or (words[-1] != "]" and "[" in words[-1:]):
                words.append(self._name_text())
            elif self._word("."):
                words.append(".")
                self._advance()
            elif self._word("["):
                self._advance()
                inside = self._curr.text
                self._advance()
                self._expect("]")
                words.append(f"[{inside}]")
            else:
                break
        return "".join(words)

    def _interval(self) -> exp.Expr:
        self._advance()
        words = ["INTERVAL"]
        while self._curr:
            if self._word("+", "-") and self._next and self._next.token_type in LITERALS:
                words.append(self._curr.text)
                self._advance()
            if self._curr.token_type not in LITERALS:
                break
            words.append(self._curr.text)
            self._advance()
            if not self._word(*UNITS):
                break
            words.append(self._curr.text.upper())
            self._advance()
            if self._word("TO") and self._next and self._next.text.upper() in UNITS:
                words += ["TO", self._next.text.upper()]
                self._advance(2)
                break
        return literal(" ".join(words), False)
