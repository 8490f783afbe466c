"""Random expressions over columns, by the family of their type. None of them raises, under ANSI or without it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

FAMILIES = (
    "int", "double", "decimal", "string", "binary", "boolean", "date", "timestamp", "local", "struct", "array", "map",
)  # fmt: skip
GROUPABLE = tuple(family for family in FAMILIES if family != "map")
ORDERED = ("int", "double", "decimal", "string", "binary", "boolean", "date", "timestamp", "local")

# `{int}` and the like stand for an expression of that family.
RULES: dict[str, tuple[str, ...]] = {
    "int": (
        "CAST({int} AS BIGINT) % 1000 + {small}", "({small} * {small})", "length({string})", "year({date})",
        "size({array})", "coalesce({int}, {small})", "CASE WHEN {boolean} THEN {int} ELSE {small} END", "-({small})",
        "abs(CAST({int} AS BIGINT) % 7)", "IF({boolean}, {int}, NULL)", "{struct}.x", "try_element_at({map}, 'a')",
        "cardinality({map})", "try_element_at({array}, 1)", "hour({timestamp})", "datediff({date}, DATE'2024-01-01')",
        "CAST({int} AS BIGINT) div 3", "CAST({boolean} AS INT)", "greatest({int}, {small})", "nullif({int}, {small})",
        "instr({string}, 'a')", "aggregate({array}, 0, (acc, el) -> acc + coalesce(el, 0))", "ascii({string})",
        "(CAST({int} AS BIGINT) & 3)", "CASE {int} WHEN 1 THEN 10 WHEN 2 THEN 20 END", "octet_length({binary})",
    ),
    "double": (
        "({double} * 2)", "CAST({int} AS DOUBLE)", "coalesce({double}, 0.5D)", "abs({double})", "{double} + 0.5D",
        "CAST({decimal} AS DOUBLE)", "nanvl({double}, 1.0D)", "try_divide({double}, 2.0D)",
        "IF({boolean}, {double}, 1.5D)",
    ),
    "decimal": (
        "{decimal} + 1.5", "CAST({int} % 100 AS DECIMAL(12, 2))", "coalesce({decimal}, 0.25)", "-({decimal})", "1.10",
        "round({decimal}, 1)", "{decimal} * 2",
    ),
    "string": (
        "upper({string})", "lower({string})", "concat({string}, '-', {string})", "{string} || 'x'",
        "substring({string}, 1, 2)",
        "CAST({int} AS STRING)", "date_format({timestamp}, 'yyyy-MM-dd HH')", "coalesce({string}, 'none')",
        "trim({string})",
        "CASE WHEN {boolean} THEN {string} WHEN {boolean} THEN 'two' END", "hex({binary})", "CAST({date} AS STRING)",
        "replace({string}, 'a', 'z')", "split({string}, ',')[0]", "{struct}.`y.z`", "CAST({timestamp} AS STRING)",
        "CAST({decimal} AS STRING)", "CAST({boolean} AS STRING)", "reverse({string})", "lpad({string}, 3, '*')",
        "regexp_replace({string}, '[ab]', '_')", "concat_ws('/', {string}, {string})", "initcap({string})",
        "'lit''eral'",
        "to_json({struct})", "CAST({local} AS STRING)", "CAST({array} AS STRING)", "if({boolean}, {string}, null)",
    ),
    "binary": ("CAST({string} AS BINARY)", "concat({binary}, X'00')", "coalesce({binary}, X'FF')",
        "unhex(hex({binary}))"),
    "boolean": (
        "{int} > {small}", "{int} = {int}", "{string} = {string}", "{string} LIKE '%a%'", "{int} IN (1, 2, NULL)",
        "NOT {boolean}",
        "({boolean} AND {boolean})", "({boolean} OR {boolean})", "{string} IS NULL", "{int} IS NOT NULL",
        "{int} BETWEEN 0 AND 2",
        "{boolean} IS TRUE", "{int} <=> {int}", "{int} IS DISTINCT FROM {small}", "{double} > 1",
        "{date} < DATE'2024-02-01'",
        "{timestamp} >= TIMESTAMP'2024-01-01 02:00:00Z'", "array_contains({array}, 1)", "{decimal} <> 0.5",
        "isnan({double})",
        "{string} NOT IN ('a', 'b')", "exists({array}, el -> el > 1)", "{struct} = {struct}",
        "{string} RLIKE '^[a-z]'",
    ),
    "date": ("CAST({timestamp} AS DATE)", "date_add({date}, {tiny})", "coalesce({date}, DATE'2020-02-29')",
        "trunc({date}, 'MM')", "last_day({date})"),
    "timestamp": ("date_trunc('hour', {timestamp})", "coalesce({timestamp}, TIMESTAMP'2024-01-01 00:00:00Z')",
        "{timestamp} + INTERVAL '1' DAY", "CAST({date} AS TIMESTAMP)"),
    "local": ("CAST({timestamp} AS TIMESTAMP_NTZ)", "{local} + INTERVAL '2' HOUR", "CAST({date} AS TIMESTAMP_NTZ)"),
    "struct": ("named_struct('x', CAST({int} AS INT), 'y.z', {string})", "IF({boolean}, {struct}, NULL)"),
    "array": ("array(1, {tiny}, NULL)", "array_distinct({array})", "slice({array}, 1, 1)",
        "transform({array}, el -> el + 1)", "sort_array({array})", "filter({array}, el -> el IS NOT NULL)"),
    "map": ("map('a', {tiny})", "map_filter({map}, (k, v) -> v > 0)"),
}  # fmt: skip
LITERALS = {
    "int": ("0", "1", "2", "-3", "CAST(NULL AS INT)"), "double": ("1.5D", "-0.0D", "CAST('NaN' AS DOUBLE)"),
    "decimal": ("2.50", "0.125"), "string": ("'a'", "''", "'ß'", "CAST(NULL AS STRING)"), "binary": ("X'61'",),
    "boolean": ("TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"), "date": ("DATE'2024-01-31'",),
    "timestamp": ("TIMESTAMP'2024-01-01 01:30:00Z'",), "local": ("TIMESTAMP_NTZ'2024-01-01 01:30:00'",),
    "struct": ("named_struct('x', 1, 'y.z', 'a')",), "array": ("array(1, 2)",), "map": ("map('a', 1)",),
}  # fmt: skip


class Expressions:
    """Draws expressions over what `columns` gives for each family."""

    def __init__(self, random: Random, columns: Iterable[tuple[str, str]]) -> None:
        self.random = random
        self._columns = defaultdict[str, list[str]](list)
        for sql, family in columns:
            self._columns[family].append(sql)

    def families(self) -> list[str]:
        return [family for family in FAMILIES if self._columns[family]]

    def column(self, family: str) -> str | None:
        found = self._columns[family]
        return self.random.choice(found) if found else None

    def draw(self, family: str, depth: int = 2) -> str:
        if family == "small":
            return f"(CAST({self.draw('int', 0)} AS BIGINT) % 10)"
        if family == "tiny":
            return str(self.random.randint(0, 3))
        column = self.column(family)
        if column is not None and (depth <= 0 or self.random.random() < 0.4):
            return column
        if depth <= 0:
            return self.random.choice(LITERALS[family])
        rule = self.random.choice(RULES[family])
        for inner in (*FAMILIES, "small", "tiny"):
            while f"{{{inner}}}" in rule:
                rule = rule.replace(f"{{{inner}}}", self.draw(inner, depth - 1), 1)
        return rule

    def anything(self, families: tuple[str, ...] = FAMILIES, depth: int = 2) -> tuple[str, str]:
        """An expression and its family: most often of one that the relation has."""
        known = [family for family in self.families() if family in families]
        family = self.random.choice(known if known and self.random.random() < 0.7 else families)
        return self.draw(family, depth), family
