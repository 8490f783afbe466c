"""Builds Arrow types and literal values while the text is read: the leaves of every statement.

A method has the name of its rule in grammar.lark and gets the parts that lark does not filter out. It runs when
the rule is complete, so there is no recursion, however deep the text is nested.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import InvalidSchema
from laminae.schema import types
from laminae.sql.clauses import Clause, Span, Typed, Value, by_kind, takes_children
from laminae.sql.intervals import read_interval
from laminae.sql.literals import read_binary, read_count, read_number, read_string, read_typed
from laminae.sql.statements import Interval, Literal
from laminae.sql.syntax_errors import Fault

if TYPE_CHECKING:
    from lark import Token

MAX_TYPE_DEPTH = 100
_WORD_VALUES = {"TRUE": True, "FALSE": False, "NULL": None}
_EXPECTED_TYPE = f"expected {', '.join(row.name for row in types.TYPES)}, ARRAY<T>, MAP<K, V> or STRUCT<name: T, ...>"

_EXPECTED_NUMBERS = "expected a form such as DECIMAL(10, 2), VARCHAR(20) or TIME(6)"


def offset_of(token: Token) -> int:
    return token.start_pos or 0


@takes_children
class TypeBuilder:
    def STRING(self, token: Token) -> Token:  # noqa: N802 - lark calls a terminal's method by its name
        return token.update(value=read_string(token, offset_of(token)))

    def QUOTED(self, token: Token) -> Token:  # noqa: N802 - as above
        quote = token[0]
        name = token[1:-1].replace(quote * 2, quote)
        if not name:
            raise Fault(offset_of(token), "a name cannot be empty", "expected a character between the quotes")
        return token.update(value=name)

    def simple_type(self, name: Token, first: Token | None, second: Token | None) -> Typed:
        arguments = tuple(read_count(number, offset_of(number)) for number in (first, second) if number is not None)
        return Typed(_named(str(name), arguments, offset_of(name)), 1)

    def interval_type(self, word: Token, unit: Token, last: Token | None) -> Typed:
        return Typed(_named(f"INTERVAL {unit}" + (f" TO {last}" if last else ""), (), offset_of(word)), 1)

    def array_type(self, word: Token, element: Typed) -> Typed:
        depth = _deeper(word, element)
        return Typed(types.array_type(element.type), depth)

    def map_type(self, word: Token, key: Typed, value: Typed) -> Typed:
        depth = _deeper(word, key, value)
        if pa.types.is_null(key.type):
            raise Fault(offset_of(word), "the key of a MAP cannot be VOID", "expected a key type with values")
        return Typed(types.map_type(key.type, value.type), depth)

    def struct_type(self, word: Token, *fields: tuple[Typed, pa.Field]) -> Typed:
        depth = _deeper(word, *(typed for typed, _ in fields))
        return Typed(types.struct_type(field for _, field in fields), depth)

    def struct_field(self, name: Token, typed: Typed, *clauses: Clause) -> tuple[Typed, pa.Field]:
        clauses_by_kind = by_kind(clauses)
        comment = str(clauses_by_kind["COMMENT"].value) if "COMMENT" in clauses_by_kind else None
        return typed, types.struct_field(str(name), typed.type, nullable(clauses_by_kind, typed), comment)

    def comment(self, word: Token, text: Token) -> Clause:
        return Clause("COMMENT", offset_of(word), str(text))

    def not_null(self, word: Token) -> Clause:
        return Clause("NOT NULL", offset_of(word), False)

    def null(self, word: Token) -> Clause:
        return Clause("NOT NULL", offset_of(word), True)

    def default(self, word: Token, value: Value) -> Clause:
        return Clause("DEFAULT", offset_of(word), Literal(value.value))

    def array_literal(self, *values: Value) -> Value:
        return Value(tuple(value.value for value in values))  # type: ignore[misc] # the grammar puts only scalars in an ARRAY

    def string(self, token: Token) -> Value:
        return Value(str(token))

    def number(self, sign: Token | None, token: Token) -> Value:
        value = read_number(token, offset_of(token))
        return Value(-value if sign == "-" else value)

    def word_literal(self, token: Token) -> Value:
        return Value(_WORD_VALUES[token.type])

    def binary(self, token: Token) -> Value:
        return Value(read_binary(token, offset_of(token)))

    def typed_literal(self, word: Token, text: Token) -> Value:
        return Value(read_typed(word.type, text, offset_of(text)))

    def interval(self, word: Token, amount: Token, unit: Token | None, last: Token | None) -> Span:
        microseconds = read_interval(amount, unit, last, offset_of(amount))
        return Span(Interval(microseconds), offset_of(word))

    def period(self, amount: Token, unit: Token) -> Span:
        return Span(Interval(read_interval(amount, unit, None, offset_of(amount))), offset_of(amount))

    def interval_literal(self, sign: Token | None, span: Span) -> Value:
        value = timedelta(microseconds=span.interval.microseconds)
        return Value(-value if sign else value)


def nullable(given: dict[str, Clause], typed: Typed) -> bool:
    clause = given.get("NOT NULL")
    if clause is None or clause.value is True:
        return True
    if pa.types.is_null(typed.type):
        raise Fault(clause.offset, "a VOID column holds only NULL, so it cannot be NOT NULL", "expected another type")
    return False


def _named(name: str, arguments: tuple[int, ...], offset: int) -> pa.DataType:
    try:
        return types.arrow_type(name, arguments)
    except InvalidSchema as error:
        expected = _EXPECTED_NUMBERS if types.is_type_name(name) else _EXPECTED_TYPE
        raise Fault(offset, str(error.params["problem"]), expected) from None


def _deeper(word: Token, *inner: Typed) -> int:
    depth = 1 + max((typed.depth for typed in inner), default=0)
    if depth > MAX_TYPE_DEPTH:
        raise Fault(
            offset_of(word),
            f"the type is nested deeper than {MAX_TYPE_DEPTH} levels",
            f"expected at most {MAX_TYPE_DEPTH} levels of ARRAY, MAP and STRUCT",
        )
    return depth
