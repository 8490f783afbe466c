"""Parse Spark SQL expressions with the precedence of Spark's own grammar (SqlBaseParser.g4) into sqlglot trees.

sqlglot's parser knows fifty dialects and rewrites its input: `x DIV y` becomes a cast, `nvl` becomes COALESCE, and
`a NOT LIKE b` becomes `NOT a LIKE b`. Here nothing is rewritten: literals, types and keywords keep their text, so the
printed query equals the original token for token (`sql_text` verifies this for every query).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from laminae.views.sql.grammar import (
    AGGREGATES,
    BARE_FUNCTIONS,
    DATETIME_UNITS,
    LITERALS,
    NO_OPERANDS,
    OPERATOR_FUNCTIONS,
    OPERATORS,
    QUERY_STARTS,
    UNIT_FUNCTIONS,
    WORDED,
)
from laminae.views.sql.verbatim import begins_with_sign, column, literal, word, written
from laminae.views.sql.word_parser import WordParser

if TYPE_CHECKING:
    from collections.abc import Callable


class ExpressionParser(WordParser):
    """sqlglot parses the clauses of a query and calls this class for every expression in them."""

    JOINS_HAVE_EQUAL_PRECEDENCE = False  # a comma in FROM is printed as a comma, not as CROSS JOIN

    def _parse_assignment(self) -> exp.Expr | None:
        return self._or()

    def _parse_disjunction(self) -> exp.Expr | None:
        return self._or()

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._value()

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        return self._value()

    def _parse_unary(self) -> exp.Expr | None:
        return self._unary()

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        return self._unary()

    def _parse_column(self) -> exp.Expr | None:
        return self._primary()

    def _or(self) -> exp.Expr | None:
        left = self._and()
        while left is not None and self._take("OR"):
            left = exp.Or(this=left, expression=self._needed(self._and()))
        return left

    def _and(self) -> exp.Expr | None:
        left = self._not()
        while left is not None and self._take("AND"):
            left = exp.And(this=left, expression=self._needed(self._not()))
        return left

    def _not(self) -> exp.Expr | None:
        if self._take("NOT", "!"):
            return exp.Not(this=self._needed(self._not()))
        left = self._value()
        return left if left is None else self._predicate(left)

    def _predicate(self, left: exp.Expr) -> exp.Expr:
        start = self._index
        no = "NOT " if self._take("NOT") else ""
        if self._take("BETWEEN"):
            low = self._needed(self._value())
            self._expect("AND")
            return written(left, f" {no}BETWEEN ", low, " AND ", self._needed(self._value()))
        if self._word("IN") and self._next and self._next.text == "(":
            self._advance(2)
            if self._curr.token_type in QUERY_STARTS:
                return written(left, f" {no}IN ", self._query_in_parentheses())
            return written(left, f" {no}IN (", *self._listed(self._or), ")")
        if self._word("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            word = self._curr.text.upper()
            self._advance()
            return self._like(left, f" {no}{word} ")
        if not no and self._take("IS"):
            no = "NOT " if self._take("NOT") else ""
            if self._take("DISTINCT"):
                self._expect("FROM")
                return written(left, f" IS {no}DISTINCT FROM ", self._needed(self._value()))
            if self._word("NULL", "TRUE", "FALSE", "UNKNOWN"):
                word = self._curr.text.upper()
                self._advance()
                return written(left, f" IS {no}{word}")
            self.raise_error("Expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        self._retreat(start)
        return left

    def _like(self, left: exp.Expr, operator: str) -> exp.Expr:
        if self._word("ANY", "SOME", "ALL") and self._next and self._next.text == "(":
            quantifier = self._curr.text.upper()
            self._advance(2)
            return written(left, f"{operator}{quantifier} (", *self._listed(self._or), ")")
        pattern = self._needed(self._value())
        if not self._take("ESCAPE"):
            return written(left, operator, pattern)
        return written(left, operator, pattern, " ESCAPE ", self._needed(self._primary()))

    def _listed(self, parse: Callable[[], exp.Expr | None]) -> list[exp.Expr | str]:
        """Comma-separated operands up to the closing parenthesis, which is consumed."""
        parts: list[exp.Expr | str] = []
        while not self._take(")"):
            if parts:
                self._expect(",")
                parts.append(", ")
            parts.append(self._needed(parse()))
        return parts

    def _value(self, level: int = len(OPERATORS) - 1) -> exp.Expr | None:
        below: Callable[[], exp.Expr | None] = (lambda: self._value(level - 1)) if level else self._unary
        left = below()
        while left is not None and (operator := self._operator(level)) is not None:
            right = self._needed(below())
            node = OPERATORS[level][operator]
            left = written(left, f" {operator} ", right) if node is None else node(this=left, expression=right)
        return left

    def _operator(self, level: int) -> str | None:
        signs = OPERATORS[level]
        if not self._curr or self._curr.token_type in (*LITERALS, TokenType.IDENTIFIER):
            return None
        sign = self._curr.text.upper()
        # A shift is several tokens here, because `>>` may close two nested types.
        if sign in ("<", ">") and self._is_next_adjacent() and self._next.text == sign:
            shift = sign * 2
            third = self._tokens[self._index + 2] if self._index + 2 < self._tokens_size else None
            if sign == ">" and third is not None and third.text == ">" and third.start == self._next.end + 1:
                shift = ">>>"
            if shift not in signs:
                return None
            self._advance(len(shift))
            return shift
        if sign not in signs:
            return None
        self._advance()
        return sign

    def _unary(self) -> exp.Expr | None:
        if self._word("-", "+", "~"):
            sign = self._curr.text
            self._advance()
            operand = self._needed(self._unary())
            # `- -1` must not become a comment.
            return written(f"{sign} " if sign != "~" and begins_with_sign(operand) else sign, operand)
        return self._primary()

    def _primary(self) -> exp.Expr | None:
        node = self._atom()
        while node is not None and self._curr:
            if self._word("."):
                self._advance()
                node = self._field(node)
            elif self._word("["):
                self._advance()
                index = self._needed(self._value())
                self._expect("]")
                node = written(node, "[", index, "]")
            elif self._word("::"):
                self._advance()
                node = written(node, "::", word(self._type_text()))
            elif self._word(":"):
                node = written(node, self._path_text())
            elif self._word("COLLATE"):
                self._advance()
                node = written(node, " COLLATE ", word(self._name_text()))
            else:
                break
        return node

    def _field(self, node: exp.Expr) -> exp.Expr:
        if self._take("*"):
            star = self._star()
            if not isinstance(node, exp.Column):
                return exp.Dot(this=node, expression=star)
            return column([*node.parts, star])
        if self._curr.token_type is TokenType.STRING or not self._curr:
            self.raise_error("Expected a name after the dot")
        name = self._identifier()
        if isinstance(node, exp.Column) and len(node.parts) < 4:
            return column([*node.parts, name])
        return exp.Dot(this=node, expression=name)

    def _star(self) -> exp.Star:
        sign = self._prev
        excluded = None
        if self._word("EXCEPT") and self._next and self._next.text == "(":
            self._advance(2)
            excluded = [part for part in self._listed(self._primary) if isinstance(part, exp.Expr)]
            excluded = [part.this if isinstance(part, exp.Column) and not part.table else part for part in excluded]
        star = exp.Star(except_=excluded) if excluded else exp.Star()
        star.update_positions(sign)
        return star

    def _atom(self) -> exp.Expr | None:
        token = self._curr
        if not token:
            return None
        if token.token_type in LITERALS:
            self._advance()
            return literal(token.text, token.token_type is TokenType.STRING)
        if token.token_type is TokenType.IDENTIFIER:
            if self._next and self._next.text == "(" and self._next.token_type is TokenType.L_PAREN:
                return self._call()
            return self._name_or_lambda()
        match token.text:
            case "(":
                return self._parenthesized()
            case "*":
                self._advance()
                return self._star()
        if not token.text.isidentifier() and not token.text[:1].isdigit():
            return None
        return self._worded(token.text.upper())

    def _worded(self, word: str) -> exp.Expr | None:
        following = self._next
        if following and following.token_type is TokenType.STRING and word not in NO_OPERANDS | {"CASE"}:
            if word == "INTERVAL":
                return self._interval()
            self._advance(2)
            return literal(f"{word} {following.text}", False)
        if word == "INTERVAL" and following and (following.token_type is TokenType.NUMBER or following.text in "+-"):
            return self._interval()
        if following and following.token_type is TokenType.L_PAREN and word not in NO_OPERANDS - OPERATOR_FUNCTIONS:
            return self._call()
        if word == "CASE":
            return self._case()
        if word in ("TRUE", "FALSE", "NULL"):
            self._advance()
            return exp.Null() if word == "NULL" else exp.Boolean(this=word == "TRUE")
        if word in NO_OPERANDS:
            return None
        if word in BARE_FUNCTIONS:
            self._advance()
            return written(word, name=word)
        return self._name_or_lambda()

    def _name_or_lambda(self) -> exp.Expr:
        name = self._identifier()
        if self._take("->"):
            return self._lambda([name])
        return column([name])

    def _lambda(self, variables: list[exp.Identifier]) -> exp.Lambda:
        names = {variable.name.casefold() for variable in variables}

        def unbound(node: exp.Expr) -> exp.Expr:
            """Turn references to the lambda's variables from columns into identifiers."""
            if not isinstance(node, exp.Column) or node.parts[0].name.casefold() not in names:
                return node
            first, *rest = node.parts
            result: exp.Expr = first.copy()
            for part in rest:
                result = exp.Dot(this=result, expression=part.copy())
            return result

        return exp.Lambda(this=self._needed(self._or()).transform(unbound), expressions=variables)

    def _parenthesized(self) -> exp.Expr:
        if (variables := self._variables()) is not None:
            return self._lambda(variables)
        self._advance()
        if self._curr.token_type in QUERY_STARTS:
            return self._query_in_parentheses()
        parts = self._listed(self._parse_expression)
        if len(parts) == 1 and isinstance(parts[0], exp.Expr):
            return exp.Paren(this=parts[0])
        return written("(", *parts, ")")

    def _variables(self) -> list[exp.Identifier] | None:
        """The variables of `(x, y) ->`; None, with no token consumed, if the parenthesis starts something else."""
        start = self._index
        self._advance()
        names: list[exp.Identifier] = []
        while self._curr and self._is_name(self._curr):
            names.append(self._identifier())
            if not self._take(","):
                break
        if names and self._take(")") and self._take("->"):
            return names
        self._retreat(start)
        return None

    def _query_in_parentheses(self) -> exp.Subquery:
        query = self._parse_query_modifiers(self._parse_set_operations(self._parse_select()))
        self._expect(")")
        return exp.Subquery(this=query)

    def _case(self) -> exp.Expr:
        self._advance()
        parts: list[str | exp.Expr] = ["CASE"]
        if not self._word("WHEN"):
            parts += [" ", self._needed(self._or())]
        while self._take("WHEN"):
            parts += [" WHEN ", self._needed(self._or())]
            self._expect("THEN")
            parts += [" THEN ", self._needed(self._or())]
        if self._take("ELSE"):
            parts += [" ELSE ", self._needed(self._or())]
        self._expect("END")
        return written(*parts, " END")

    def _call(self) -> exp.Expr:
        token = self._curr
        name = "" if token.token_type is TokenType.IDENTIFIER else token.text.upper()
        self._advance(2)
        node: exp.Expr
        if name in ("CAST", "TRY_CAST"):
            value = self._needed(self._or())
            self._expect("AS")
            node = written(f"{name}(", value, " AS ", word(self._type_text()), ")", name=name)
            self._expect(")")
        elif name == "EXISTS" and self._curr.token_type in QUERY_STARTS:
            return written("EXISTS ", self._query_in_parentheses())
        elif name in WORDED:
            node = self._worded_call(name)
        else:
            arguments = self._arguments(name)
            kind = AGGREGATES.get(name)
            if kind is not None and len(arguments) == 1:
                node = kind(this=arguments[0])
            elif name == "COUNT" and arguments:
                node = exp.Count(this=arguments[0], expressions=arguments[1:])
            else:
                this: str | exp.Expr = token.text
                if not name:
                    this = exp.Identifier(this=token.text, quoted=True)
                node = exp.Anonymous(this=this, expressions=arguments)
        node.update_positions(token)
        result = self._parse_window(node)
        assert result is not None  # it returns None for None only
        return result

    def _arguments(self, name: str) -> list[exp.Expr]:
        if self._take("DISTINCT"):
            return [exp.Distinct(expressions=[part for part in self._listed(self._or) if isinstance(part, exp.Expr)])]
        unit: exp.Expr | None = None
        if name in UNIT_FUNCTIONS and self._word(*DATETIME_UNITS) and self._next and self._next.text == ",":
            unit = self._identifier()
            self._expect(",")
        first = "ALL " if self._word("ALL") and self._next and self._next.text not in (",", ")") else ""
        if first:
            self._advance()
        arguments = [part for part in self._listed(self._argument) if isinstance(part, exp.Expr)]
        if first and arguments:
            arguments[0] = written(first, arguments[0])
        if unit is not None:
            is_unit = len(arguments) == 2
            arguments.insert(0, exp.Var(this=unit.name.upper()) if is_unit else column([unit]))
        return arguments

    def _argument(self) -> exp.Expr | None:
        if self._curr and self._is_name(self._curr) and self._next and self._next.text == "=>":
            name = self._identifier()
            self._advance()
            return written(name, " => ", self._needed(self._or()))
        if self._curr.token_type in QUERY_STARTS[:3]:
            return self._parse_query_modifiers(self._parse_set_operations(self._parse_select()))
        value = self._or()
        if value is not None and self._take("AS"):
            return exp.Alias(this=value, alias=self._identifier())
        if value is not None and self._word("IGNORE", "RESPECT"):
            word = self._curr.text.upper()
            self._advance()
            self._expect("NULLS")
            return written(value, f" {word} NULLS")
        return value

    def _worded_call(self, name: str) -> exp.Expr:
        """EXTRACT(YEAR FROM t), TRIM(BOTH x FROM y): kept as written, with keywords or with commas."""
        parts: list[str | exp.Expr] = [f"{name}("]
        if name == "EXTRACT" and self._next and self._next.text.upper() == "FROM":
            parts.append(self._curr.text if self._curr.token_type is TokenType.STRING else self._curr.text.upper())
            self._advance()
        while not self._take(")"):
            if self._take(","):
                parts.append(", ")
            elif self._word(*WORDED[name]):
                parts.append(f"{'' if len(parts) == 1 else ' '}{self._curr.text.upper()} ")
                self._advance()
            else:
                parts.append(self._needed(self._value()))
        return written(*parts, ")", name=name)
