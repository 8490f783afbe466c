"""A case from a seed: one home with sources, several views, and rounds of records with what happens between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.support.view_fuzz.columns import BY_SQL, KINDS, Column, Names
from tests.support.view_fuzz.queries import Queries, Relation, View

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 4
TIME, KEY, WEIGHT, GONE = "ts", "id", "w", "gone"
SETTINGS = (
    ("spark.sql.session.timeZone", ("UTC", "America/New_York", "Asia/Kolkata")),
    ("spark.sql.ansi.enabled", ("true", "true", "false")),
    ("spark.sql.caseSensitive", ("false", "false", "true")),
)
Row = dict[str, object]


@dataclass
class Source:
    """A source and the rows that it has, by the names that its columns had when it was created."""

    name: str
    changelog: str
    columns: tuple[Column, ...]
    rows: list[Row] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def ddl(self) -> str:
        declared = [column.declared for column in self.columns]
        declared.append(f"WATERMARK FOR {TIME} AS {TIME} - INTERVAL '40000' DAY")
        options = ["connector = 'push'", f"changelog = '{self.changelog}'"]
        if self.changelog == "upsert":
            declared = [f"{declared[0]} NOT NULL", *declared[1:], f"PRIMARY KEY ({KEY})"]
            declared.insert(-1, f"{GONE} BOOLEAN")
            options.append(f"deleted_by = '{GONE}'")
        if self.changelog == "retract":
            declared.append(f"{WEIGHT} INT")
            options.append(f"weight_field = '{WEIGHT}'")
        return f"CREATE SOURCE {self.name} ({', '.join(declared)}) WITH ({', '.join(options)})"

    @property
    def relation(self) -> Relation:
        return Relation(
            self.name,
            tuple((column.sql, column.kind.family) for column in self.columns),
            TIME,
            self.changelog != "append",
        )

    def table(self, rows: list[Row]) -> pa.Table:
        schema = pa.schema([pa.field(column.name, column.kind.arrow) for column in self.columns])
        return pa.Table.from_pylist(rows, schema)

    def records(self, random: Random) -> list[Row]:
        """Records of one round; `rows` are what the source has after them."""
        found = list(self._records(random))
        return [{self.renamed.get(name, name): value for name, value in record.items()} for record in found]

    def _records(self, random: Random) -> Iterator[Row]:
        for _ in range(random.choice((0, 1, 3, 6))):
            match self.changelog:
                case "append":
                    self.rows.append(self._row(random))
                    yield self.rows[-1]
                case "upsert":
                    yield self._upserted(random)
                case "retract":
                    yield self._retracted(random)

    def _row(self, random: Random) -> Row:
        found = {column.name: column.kind.draw(random) for column in self.columns}
        while found[TIME] is None:
            found[TIME] = BY_SQL["TIMESTAMP"].draw(random)
        return found

    def _upserted(self, random: Random) -> Row:
        row = self._row(random) | {KEY: random.randint(1, 4)}
        self.rows = [other for other in self.rows if other[KEY] != row[KEY]]
        if random.random() < 0.25:
            return row | {GONE: True}
        self.rows.append(row)
        return row | {GONE: random.choice((None, False))}

    def _retracted(self, random: Random) -> Row:
        if self.rows and random.random() < 0.4:
            return self.rows.pop(random.randrange(len(self.rows))) | {WEIGHT: -1}
        copies = random.choice((1, 1, 2))
        row = random.choice(self.rows) if self.rows and random.random() < 0.3 else self._row(random)
        self.rows += [row] * copies
        return row | {WEIGHT: copies}


@dataclass(frozen=True)
class Case:
    seed: int
    settings: dict[str, str]
    other_settings: dict[str, str]
    sources: tuple[Source, ...]
    views: tuple[View, ...]
    later: tuple[View, ...]
    """Views that are created after the second round."""
    restarts: bool
    alters: bool


def draw_case(seed: int, views: int, joins: bool = False) -> Case:
    random = Random(seed)
    sources = tuple(_source(random, number) for number in range(2 if joins else random.choice((1, 1, 2))))
    relations = [source.relation for source in sources]
    queries, made = Queries(random), []
    for number in range(views):
        view = (queries.draw_join if joins else queries.draw)(f"v{number}", relations)
        made.append(view)
        if random.random() < 0.3:
            relations.append(Relation(view.name, view.columns))
    alters = random.random() < 0.4 and not any(view.follows for view in made)
    late = views - views // 5
    settings, other = ({name: random.choice(values) for name, values in SETTINGS} for _ in range(2))
    return Case(seed, settings, other, sources, tuple(made[:late]), tuple(made[late:]), random.random() < 0.5, alters)


def _source(random: Random, number: int) -> Source:
    names = Names(random, (KEY, TIME, WEIGHT, GONE, "_weight", "_op", "_timestamp", "_epoch", "_hash", "_rows"))
    kinds = random.sample(KINDS, random.randint(4, 7))
    own = (Column(KEY, BY_SQL["BIGINT"]), Column(TIME, BY_SQL["TIMESTAMP"]))
    columns = (*own, *(Column(names.next("col"), kind) for kind in kinds))
    return Source(f"s{number}", random.choice(("append", "upsert", "retract")), columns)
