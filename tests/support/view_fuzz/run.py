"""Runs a case: through laminae epoch by epoch, through Spark batch round by round, and compares."""

# ruff: noqa: S608  # the texts are made of names in these modules
from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import laminae as lm
from laminae.catalog.model import ViewStatus
from laminae.errors import LaminaeError
from laminae.schema.identifiers import quoted
from laminae.spark.catalyst.types import spark_schema
from tests.support.view_fuzz.case import draw_case
from tests.support.view_fuzz.columns import WIDER, Column
from tests.support.view_fuzz.known import known_reason

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.view_fuzz.case import Case
    from tests.support.view_fuzz.queries import View

OPTIONS = "map('ignoreNullFields', 'false')"
CHANGE_COLUMNS = ("_epoch", "_op", "_weight", "_timestamp")
Answer = tuple[str, "Counter[str]"]
"""The types of a query, and its rows as JSON."""


@dataclass
class Outcome:
    compared: int = 0
    refused: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    """Views whose query Spark batch does not answer either."""
    differences: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.compared += other.compared
        for name in ("refused", "known", "unanswered", "differences", "stopped"):
            getattr(self, name).extend(getattr(other, name))

    def summary(self) -> str:
        counts = f"compared {self.compared}, refused {len(self.refused)}, known {len(self.known)}"
        rest = f"differences {len(self.differences)}, stopped {len(self.stopped)}"
        return f"{counts}, unanswered {len(self.unanswered)}, {rest}"


def run_case(
    spark: SparkSession, directory: Path, seed: int, views: int, only: str | None = None, joins: bool = False
) -> Outcome:
    return _Run(draw_case(seed, views, joins), spark, directory, only).outcome()


class _Run:
    def __init__(self, case: Case, spark: SparkSession, directory: Path, only: str | None) -> None:
        self.case, self.spark, self.home, self.only = case, spark, str(directory / f"home{case.seed}"), only
        self.random = Random(case.seed + 1)
        self.result = Outcome()
        self.views: dict[str, View] = {}
        self.born: dict[str, int] = {}
        self.tables: list[dict[str, pa.Table]] = []
        """The rows of each source after each round, in the types that its columns had then."""
        self.epochs: list[int] = []

    def outcome(self) -> Outcome:
        try:
            self._stream()
        except Exception as problem:  # noqa: BLE001  # whatever stops a source is what this looks for
            self.result.stopped.append(f"seed {self.case.seed}: {type(problem).__name__}: {_end(str(problem))}")
            return self.result
        return self.result

    def session(self, settings: dict[str, str]) -> SparkSession:
        session = self.spark.newSession()
        for name, value in {**settings, "spark.sql.variable.substitute": "false"}.items():
            session.conf.set(name, value)
        return session

    def _stream(self) -> None:
        db = lm.connect(self.home, spark=self.session(self.case.settings))
        for source in self.case.sources:
            db.sql(source.ddl)
        self._create(db, self.case.views)
        pipeline = db.start("0 seconds")
        for number in range(4):
            if number == 2:
                if self.case.restarts:
                    pipeline.stop()
                    db.close()
                    db = lm.connect(self.home, spark=self.session(self.case.other_settings))
                    pipeline = db.start("0 seconds")
                if self.case.alters:
                    self._alter(db)
                self._create(db, self.case.later)
            for source in self.case.sources:
                if records := source.records(self.random):
                    db.insert(source.name, records)
            pipeline.process_all_available()
            self.tables.append({source.name: source.table(source.rows) for source in self.case.sources})
            # A view that was filled in this round has an epoch of its own, which belongs to no source.
            self.epochs.append(db._catalog.last_epoch())
        pipeline.stop()
        try:
            self._compare(db)
        finally:
            db.close()

    def _create(self, db: lm.Database, views: tuple[View, ...]) -> None:
        for view in views:
            if self.only is not None and view.name not in self.only.split(","):
                continue
            if not {*view.reads} <= {*self.views, *(source.name for source in self.case.sources)}:
                continue  # the view below it was refused
            if reason := known_reason(view):
                self.result.known.append(reason)
                continue
            try:
                db.sql(f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}")
            except LaminaeError as problem:
                self.result.refused.append(f"{str(problem).splitlines()[0]} | {view.query}")
                continue
            self.views[view.name], self.born[view.name] = view, len(self.tables)

    def _alter(self, db: lm.Database) -> None:
        """Changes that a view which names its columns does not notice."""
        for source in self.case.sources:
            db.sql(f"ALTER SOURCE {source.name} ADD COLUMN `added.one` INT DEFAULT 7")
            column = self.random.choice(source.columns[2:])
            new = f"{column.name} `new`"[-200:]
            db.sql(f"ALTER SOURCE {source.name} RENAME COLUMN {column.sql} TO {quoted(new)}")
            source.renamed[column.name] = new
            widened = [(place, each) for place, each in enumerate(source.columns) if each.kind.sql in WIDER]
            if widened:
                place, column = self.random.choice(widened)
                name, kind = source.renamed.get(column.name, column.name), WIDER[column.kind.sql]
                db.sql(f"ALTER SOURCE {source.name} ALTER COLUMN {quoted(name)} TYPE {kind.sql}")
                source.columns = (*source.columns[:place], Column(column.name, kind), *source.columns[place + 1 :])

    def _compare(self, db: lm.Database) -> None:
        for row in db.sql("SELECT name, state, problem FROM laminar_catalog.views").arrow().to_pylist():
            if row["state"] != ViewStatus.LIVE:
                self._differs(row["name"], f"it is {row['state']}: {str(row['problem'])[:300]}")
                self.views.pop(row["name"], None)
        letters = db.sql("SELECT view_name, reason FROM laminar_catalog.dead_letters").arrow().to_pylist()
        for name, reason in {(letter["view_name"], letter["reason"]) for letter in letters}:
            self._differs(name, f"dead letter: {reason}")
        if not self.views:
            return
        expected = [self._batch(number) for number in range(len(self.tables))]
        shown = _texts({name: db.sql(f"SELECT * FROM {name}").spark() for name in self.views})
        changes = _changes({name: db.sql(f"SELECT * FROM CHANGES OF {name}").spark() for name in self.views})
        for name, view in self.views.items():
            self._compare_view(view, [each.get(name) for each in expected], shown[name], changes[name])
            self._compare_pairs(view, [(row[0], row[1]) for row in db.changes(name).fetchall()])

    def _compare_view(
        self, view: View, expected: list[Answer | None], shown: Answer, changes: list[tuple[int, str, int, str]]
    ) -> None:
        answers = [each for each in expected if each is not None]
        if len(answers) < len(expected):
            self.result.unanswered.append(view.query)
            return
        self.result.compared += 1
        types, rows = shown
        if rows != answers[-1][1]:
            self._differs(view.name, f"rows {_difference(rows, answers[-1][1])}")
        if types != answers[-1][0] and not self.case.alters:
            self._differs(view.name, f"types {types} instead of {answers[-1][0]}")
        by_epoch = defaultdict(list)
        for epoch, op, weight, text in changes:
            by_epoch[epoch].append((weight, text))
            if (weight > 0) != (op in ("+I", "+U")):
                self._differs(view.name, f"{op} has weight {weight}")
        self._compare_epochs(view, by_epoch)
        total: Counter[str] = Counter()
        for number, last in enumerate(self.epochs):
            for epoch in [epoch for epoch in sorted(by_epoch) if epoch <= last]:
                for weight, text in by_epoch.pop(epoch):
                    total[text] += weight
                if any(count < 0 for count in total.values()):
                    self._differs(view.name, f"a negative row after epoch {epoch}")
            if number >= self.born[view.name] and +total != answers[number][1]:
                self._differs(view.name, f"changes up to round {number} {_difference(+total, answers[number][1])}")
                return

    def _compare_epochs(self, view: View, by_epoch: dict[int, list[tuple[int, str]]]) -> None:
        """No epoch of a join emits a row and its retraction."""
        for epoch, changes in by_epoch.items():
            signs = defaultdict(set)
            for weight, text in changes:
                signs[text].add(weight > 0)
            if view.shape == "joined" and any(len(each) > 1 for each in signs.values()):
                self._differs(view.name, f"a row and its retraction in epoch {epoch}")

    def _compare_pairs(self, view: View, changes: list[tuple[object, object]]) -> None:
        """-U stands right before its +U, in one epoch."""
        for place, (epoch, op) in enumerate(changes):
            if op == "-U" and changes[place + 1 : place + 2] != [(epoch, "+U")]:
                self._differs(view.name, f"-U without +U behind it in epoch {epoch}")
            if op == "+U" and (place == 0 or changes[place - 1] != (epoch, "-U")):
                self._differs(view.name, f"+U without -U before it in epoch {epoch}")

    def _batch(self, number: int) -> dict[str, Answer]:
        session = self.session(self.case.settings)
        for source in self.case.sources:
            table = self.tables[number][source.name]
            # PySpark would take a time without a zone for one with the session's.
            session.createDataFrame(table, spark_schema(table.schema)).createOrReplaceTempView(source.name)
        frames: dict[str, DataFrame] = {}
        for view in self.views.values():
            try:
                frames[view.name] = session.sql(view.query)
                frames[view.name].createOrReplaceTempView(view.name)
            except Exception:  # noqa: BLE001  # Spark does not take it: nothing to compare with
                frames.pop(view.name, None)
        try:
            return _texts(frames)
        except Exception:  # noqa: BLE001  # one of them raises on these rows: which one is asked apart
            found: dict[str, Answer] = {}
            for name, frame in frames.items():
                try:
                    found |= _texts({name: frame})
                except Exception:  # noqa: BLE001  # Spark raises: nothing to compare with
                    continue
            return found

    def _differs(self, name: str | None, what: str) -> None:
        view = self.views.get(name or "")
        settings = json.dumps(self.case.settings)
        extra = f"restarts {self.case.restarts}, alters {self.case.alters}"
        text = f"seed {self.case.seed} view {name}: {what}\n  {view.query if view else ''}\n  {settings} {extra}"
        self.result.differences.append(text)


def _texts(frames: dict[str, DataFrame]) -> dict[str, Answer]:
    """Types and rows of each frame, by one job."""
    found = {name: (frame.schema.simpleString(), Counter[str]()) for name, frame in frames.items()}
    whole: DataFrame | None = None
    for name, frame in frames.items():
        fields = ", ".join(map(quoted, frame.columns))
        text = frame.selectExpr(f"'{name}' AS name", f"to_json(struct({fields}), {OPTIONS}) AS text")
        whole = text if whole is None else whole.unionAll(text)
    for name, text in [] if whole is None else whole.collect():
        found[name][1][_normal(text)] += 1
    return found


def _changes(frames: dict[str, DataFrame]) -> dict[str, list[tuple[int, str, int, str]]]:
    """Epoch, operation, weight and row of every change of each view, by one job."""
    found: dict[str, list[tuple[int, str, int, str]]] = {name: [] for name in frames}
    whole: DataFrame | None = None
    for name, frame in frames.items():
        own = [quoted(each) for each in frame.columns if each not in CHANGE_COLUMNS]
        row = f"to_json(struct({', '.join(own)}), {OPTIONS}) AS text"
        part = frame.selectExpr(f"'{name}' AS name", "_epoch", "_op", "_weight", row)
        whole = part if whole is None else whole.unionAll(part)
    for name, epoch, op, weight, text in [] if whole is None else whole.collect():
        found[name].append((epoch, op, weight, _normal(text)))
    return found


def _normal(text: str) -> str:
    """Either zero stands for both where Spark compares them as equal."""
    return text.replace("-0.0,", "0.0,").replace("-0.0}", "0.0}")


def _end(text: str) -> str:
    """What a traceback inside a message is about: its last lines before Spark's description of the query."""
    told = text.partition("=== Streaming Query ===")[0].rstrip()
    return told if len(told) < 700 else f"{told[:120]} ... {told[-580:]}"


def _difference(found: Counter[str], wanted: Counter[str]) -> str:
    return f"too many {list((found - wanted).items())[:3]} missing {list((wanted - found).items())[:3]}"[:700]
