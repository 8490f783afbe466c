"""Random queries that a materialized view takes, and the columns that each shows."""

# ruff: noqa: S608  # the texts are made of names in these modules
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.schema.identifiers import quoted
from tests.support.view_fuzz.columns import Names
from tests.support.view_fuzz.expressions import FAMILIES, GROUPABLE, ORDERED, Expressions

if TYPE_CHECKING:
    from random import Random

Shown = tuple[tuple[str, str], ...]
"""(name as it is written in SQL, family) of each column of a relation."""


JOINS = (
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "LEFT OUTER JOIN",
    "RIGHT JOIN",
    "FULL OUTER JOIN",
    "LEFT SEMI JOIN",
    "ANTI JOIN",
)


@dataclass(frozen=True)
class Relation:
    name: str
    columns: Shown
    time: str | None = None
    shows_more: bool = False
    """Whether it has columns that the model does not, so that nothing may select all of them."""


@dataclass(frozen=True)
class View:
    name: str
    query: str
    reads: tuple[str, ...]
    columns: Shown
    shape: str
    follows: bool = False
    """Whether a `*` lets it follow its source."""


class Queries:
    def __init__(self, random: Random) -> None:
        self.random = random

    def draw_join(self, name: str, relations: list[Relation]) -> View:
        """A view over a join of two or three relations, which may be the same."""
        parts = [self.random.choice(relations) for _ in range(self.random.choice((2, 2, 2, 3)))]
        joined, columns = self._joined(parts)
        pick = Expressions(self.random, columns)
        relation = Relation(joined, columns)
        if self.random.random() < 0.4:
            keys = list(dict(pick.anything(GROUPABLE) for _ in range(self.random.randint(0, 2))).items())
            query, shown = self._grouping(relation, pick, keys)
        else:
            query, shown = self.random.choice((self.linear, self.linear, self.distinct))(relation)
        return View(name, query, tuple(part.name for part in parts), shown, "joined")

    def _joined(self, parts: list[Relation]) -> tuple[str, Shown]:
        first, *rest = parts
        text, columns = f"{first.name} AS j0", _qualified("j0", first)
        for number, part in enumerate(rest, 1):
            own = _qualified(f"j{number}", part)
            kind = self.random.choice(JOINS)
            text += f" {kind} {part.name} AS j{number} ON {' AND '.join(self._conditions(columns, own, kind))}"
            columns = columns if ("SEMI" in kind or "ANTI" in kind) else (*columns, *own)
        return text, columns

    def _conditions(self, left: Shown, right: Shown, kind: str) -> list[str]:
        mine, theirs = Expressions(self.random, left), Expressions(self.random, right)
        found = []
        for _ in range(self.random.choice((1, 1, 2))):
            family = self.random.choice(("int", "int", "string", "date", "decimal", "boolean", "double", "struct"))
            depth = self.random.choice((0, 0, 1))
            sign = self.random.choice(("=", "=", "=", "<=>"))
            sides = mine.draw(family, depth), theirs.draw(family, depth)
            if all(re.search(r"\bj\d\.", side) for side in sides):
                found.append(f"({sides[0]}) {sign} ({sides[1]})")
        found = found or [self._equality(left, right)]
        if self.random.random() < 0.4:
            family = self.random.choice(("int", "string", "date", "timestamp", "decimal"))
            sign = self.random.choice(("<", "<=", ">", ">=", "<>"))
            found.append(f"({mine.draw(family, 1)}) {sign} ({theirs.draw(family, 1)})")
        if self.random.random() < 0.2:
            found.append(self.random.choice((mine, theirs)).draw("boolean", 1))
        return found

    def _equality(self, left: Shown, right: Shown) -> str:
        """Of two columns of one family; of texts where there are none."""
        pairs = [(a, b) for a, one in left for b, other in right if one == other and one in GROUPABLE]
        a, b = self.random.choice(pairs) if pairs else (f"to_json(struct({left[0][0]}))", f"'x' || {right[0][0]}")
        return f"{a} = {b}"

    def draw(self, name: str, relations: list[Relation]) -> View:
        relation = self.random.choice(relations)
        shapes = [self.linear] * 2 + [self.grouped] * 3 + [self.total, self.distinct, self.union]
        shapes += [self.nested, self.common]
        if not relation.shows_more:
            shapes.append(self.star)
        if relation.time is not None:
            shapes += [self.windowed, self.windowed]
        shape = self.random.choice(shapes)
        query, columns = shape(relation)
        return View(name, query, (relation.name,), columns, shape.__name__, shape == self.star)

    def linear(self, relation: Relation) -> tuple[str, Shown]:
        pick = Expressions(self.random, relation.columns)
        items = [pick.anything() for _ in range(self.random.randint(1, 4))]
        columns, text = self._listed(items)
        return f"SELECT {text} FROM {relation.name}{self._where(pick)}", columns

    def star(self, relation: Relation) -> tuple[str, Shown]:
        pick = Expressions(self.random, relation.columns)
        return f"SELECT * FROM {relation.name}{self._where(pick)}", relation.columns

    def distinct(self, relation: Relation) -> tuple[str, Shown]:
        pick = Expressions(self.random, relation.columns)
        items = [pick.anything(GROUPABLE) for _ in range(self.random.randint(1, 3))]
        columns, text = self._listed(items)
        return f"SELECT DISTINCT {text} FROM {relation.name}{self._where(pick)}", columns

    def grouped(self, relation: Relation) -> tuple[str, Shown]:
        pick = Expressions(self.random, relation.columns)
        keys = [pick.anything(GROUPABLE) for _ in range(self.random.randint(1, 3))]
        keys = list(dict(keys).items())
        return self._grouping(relation, pick, keys)

    def total(self, relation: Relation) -> tuple[str, Shown]:
        return self._grouping(relation, Expressions(self.random, relation.columns), [])

    def windowed(self, relation: Relation) -> tuple[str, Shown]:
        pick = Expressions(self.random, relation.columns)
        span = self.random.choice(("'1 hour'", "'30 minutes'", "'1 hour', '30 minutes'", "'1 day'"))
        window = f"window({relation.time}, {span})"
        keys = [pick.anything(GROUPABLE, 1)] if self.random.random() < 0.6 else []
        items = [(f"{window}.start", "timestamp"), (f"{window}.end", "timestamp"), *keys]
        items += [self._aggregate(pick) for _ in range(self.random.randint(1, 3))]
        columns, text = self._listed(items)
        by = ", ".join([window, *(sql for sql, _ in keys)])
        return f"SELECT {text} FROM {relation.name}{self._where(pick)} GROUP BY {by}", columns

    def union(self, relation: Relation) -> tuple[str, Shown]:
        pick = Expressions(self.random, relation.columns)
        distinct = self.random.random() < 0.5
        families = [self.random.choice(GROUPABLE if distinct else FAMILIES) for _ in range(self.random.randint(1, 3))]
        left, right = ([(pick.draw(family, 1), family) for family in families] for _ in range(2))
        columns, text = self._listed(left)
        _, other = self._listed(right)
        word = "UNION" if distinct else "UNION ALL"
        first = f"SELECT {text} FROM {relation.name}{self._where(pick)}"
        return f"{first} {word} SELECT {other} FROM {relation.name}{self._where(pick)}", columns

    def nested(self, relation: Relation) -> tuple[str, Shown]:
        inner, columns = self.random.choice((self.linear, self.grouped, self.distinct))(relation)
        alias = self.random.choice(("t", "`sub.q`"))
        query, shown = self.random.choice((self.linear, self.grouped))(Relation(f"({inner}) AS {alias}", columns))
        return query, shown

    def common(self, relation: Relation) -> tuple[str, Shown]:
        inner, columns = self.random.choice((self.linear, self.grouped))(relation)
        query, shown = self.random.choice((self.linear, self.grouped, self.distinct))(Relation("c", columns))
        return f"WITH c AS ({inner}) {query}", shown

    def _grouping(self, relation: Relation, pick: Expressions, keys: list[tuple[str, str]]) -> tuple[str, Shown]:
        aggregates = [self._aggregate(pick) for _ in range(self.random.randint(1, 4))]
        kept = [key for key in keys if self.random.random() < 0.9]
        columns, text = self._listed([*kept, *aggregates])
        by = f" GROUP BY {', '.join(sql for sql, _ in keys)}" if keys else ""
        having = (
            f" HAVING {self.random.choice(('COUNT(*) > 1', 'COUNT(*) <> 2'))}" if self.random.random() < 0.25 else ""
        )
        return f"SELECT {text} FROM {relation.name}{self._where(pick)}{by}{having}", columns

    def _aggregate(self, pick: Expressions) -> tuple[str, str]:
        filtered = f" FILTER (WHERE {pick.draw('boolean', 1)})" if self.random.random() < 0.2 else ""
        match self.random.choice(("rows", "count", "sum", "avg", "least", "most", "distinct")):
            case "rows":
                return f"COUNT(*){filtered}", "int"
            case "count":
                return f"COUNT({pick.anything(depth=1)[0]}){filtered}", "int"
            case "sum":
                family = self.random.choice(("int", "double", "decimal"))
                return f"SUM({pick.draw(family, 1)}){filtered}", family
            case "avg":
                family = self.random.choice(("int", "double"))
                return f"AVG({pick.draw(family, 1)}){filtered}", "double"
            case "distinct":
                return f"COUNT(DISTINCT {pick.anything(ORDERED, 1)[0]}){filtered}", "int"
            case word:
                sql, family = pick.anything(ORDERED, 1)
                return f"{'MIN' if word == 'least' else 'MAX'}({sql}){filtered}", family

    def _where(self, pick: Expressions) -> str:
        return f" WHERE {pick.draw('boolean')}" if self.random.random() < 0.5 else ""

    def _listed(self, items: list[tuple[str, str]]) -> tuple[Shown, str]:
        names = Names(self.random, ("_weight", "_op", "_timestamp", "_epoch", "_hash", "_rows"))
        columns = tuple((quoted(names.next("c", 0.3)), family) for _, family in items)
        pairs = zip(items, columns, strict=True)
        return columns, ", ".join(f"{sql} AS {name}" for (sql, _), (name, _) in pairs)


def _qualified(alias: str, relation: Relation) -> Shown:
    return tuple((f"{alias}.{name}", family) for name, family in relation.columns)
