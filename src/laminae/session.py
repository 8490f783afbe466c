"""`connect()` and what it gives: a Database that answers SQL over one home. Wires the parts; decides nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from laminae import ddl
from laminae.catalog import open_catalog
from laminae.catalog.updates import DropSavepoint, PutSavepoint
from laminae.engine.engine import Engine
from laminae.engine.options import DURATION, option
from laminae.engine.plan import Outcome, Plan, PlanLine, explain
from laminae.engine.query import run_query
from laminae.engine.relations import RELATIONS, describe_source, table_of
from laminae.engine.status import status
from laminae.engine.writers import SubjectFinder
from laminae.errors import HomeUnwritable, InvalidOption, LaminaeError, UnknownObject
from laminae.notices import Courier
from laminae.result import Result
from laminae.schema.describe import describe_change
from laminae.views.dependencies import CHANGES, parse_query, relations_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from pyspark.sql import SparkSession

    from laminae.catalog.model import HistoryRow, SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.collection import Removal
    from laminae.engine.ports import FoundSchema, SchemaFinder
    from laminae.notices import NoticeCounts
    from laminae.notices.courier import OnChange
    from laminae.spark.epoch import Replayed
    from laminae.spark.metrics import OnMetric
    from laminae.spark.pipeline import Pipeline
    from laminae.spark.runtime import Runtime

CATALOG = "laminar_catalog"
SPARK_RELATIONS = ("dead_letters", "late_rows")
BY_SPARK = "its rows, by Spark"
TABLES = ("iceberg", "delta")
"""Connectors whose sources are tables, which have a schema of their own."""

DONE = pa.schema([("status", pa.string()), ("object", pa.string()), ("version", pa.int64()), ("detail", pa.string())])
EXPLAINED = pa.schema([("step", pa.string()), ("subject", pa.string()), ("detail", pa.string())])
STATUS = {Outcome.APPLY: "applied", Outcome.NOTHING: "unchanged", Outcome.WAIT: "waiting", Outcome.REFUSE: "refused"}
SHOWN = {ddl.ObjectKind.SOURCE: "sources", ddl.ObjectKind.VIEW: "views", ddl.ObjectKind.SINK: "sinks"}


def connect(
    home: str | PathLike[str] = ".laminae",
    spark: object | None = None,
    catalog: str | None = None,
    jars: Sequence[str] = (),
    config: Mapping[str, str] | None = None,
    from_savepoint: str | None = None,
    on_change: OnChange | None = None,
) -> Database:
    """Open a home: a directory, or a file system URI with its catalog in PostgreSQL. Starts no Spark.

    `spark` is a session to use instead of one of our own; `jars` and `config` go to the one we start. With
    `from_savepoint` the home goes back to that savepoint first, as by `restore`. `on_change` is called, in a thread of
    its own, with a `SchemaNotice` of each change of a schema that this Database makes or its pipeline finds.
    """
    if not isinstance(home, str | PathLike):
        raise HomeUnwritable(location=repr(home), problem="this is not the name of a directory")
    db = Database(str(home), open_catalog(str(home), catalog), spark, tuple(jars), dict(config or {}), on_change)
    if from_savepoint is not None:
        try:
            db.restore(from_savepoint)
        except BaseException:
            db.close()
            raise
    return db


class Database:
    """One home. DDL is one transaction per statement; a text that does not parse changes nothing at all."""

    def __init__(
        self,
        home: str,
        catalog: Catalog,
        spark: object | None,
        jars: tuple[str, ...],
        config: dict[str, str],
        on_change: OnChange | None = None,
    ) -> None:
        self.home = home
        self._catalog = catalog
        self._courier = Courier(on_change)
        outside: dict[str, SchemaFinder] = dict.fromkeys(("files", *TABLES), _Finder(self))
        finders = {**outside, "registry": SubjectFinder(catalog)}
        self._engine = Engine(catalog, finders, on_change=self._courier.hand_over)
        self._spark, self._jars, self._config = spark, jars, config
        self._runtime: Runtime | None = None

    def sql(self, text: str) -> Result:
        """Run every statement of `text`; the result is that of the last one."""
        if not isinstance(text, str):
            raise InvalidOption(option="text", owner="sql", problem=f"it is {type(text).__name__}", advice="Give text.")
        statements = ddl.parse(text)
        for statement in statements:
            if isinstance(statement, ddl.Query | ddl.CreateView):
                parse_query(statement.text if isinstance(statement, ddl.Query) else statement.query)
        result = Result(table_of(DONE, ()))
        for done, statement in enumerate(statements):
            try:
                result = self._answer(statement)
            except LaminaeError as error:
                if done:
                    error.add_note(f"statement {done + 1} of {len(statements)}; the {done} before it were carried out")
                raise
        return result

    def insert(self, source: str, rows: object) -> int:
        """Put rows (dicts, an Arrow table or a pandas frame) into a push source; how many there were."""
        return self._on_spark().insert(self._engine.source(source), rows)

    def start(self, trigger: str = "1 second", on_metric: OnMetric | None = None) -> Pipeline:
        """Run every source of the home until `stop()`. Takes the lease; `LeaseHeld` names who has it.

        `on_metric` is called with each epoch that is committed and each progress report of Spark's own.
        """
        if not isinstance(trigger, str) or not DURATION.fullmatch(trigger.strip()):
            raise InvalidOption(
                option="trigger", owner="start", problem=f"{trigger!r} does not fit", advice="Give '1 second', say."
            )
        return self._on_spark().start(trigger, on_metric)

    def run(self) -> None:
        """Process everything that is there now, deliver it, and return."""
        self._on_spark().run()

    def replay_dead_letters(self, source: str) -> Replayed:
        """Put the dead letters of a source through again, exactly once, with the schema in force now."""
        return self._on_spark().replay(self._engine.source(source).name)

    def repair(self, source: str) -> int | None:
        """Rebuild the Spark checkpoint of a source at the catalog's offsets; the batch that comes before the next."""
        return self._on_spark().repair(self._engine.source(source))

    def savepoint(self, name: str) -> int:
        """Pin the last committed epoch under a name; its number. A running pipeline goes on."""
        return self._catalog.commit([PutSavepoint(name, datetime.now(UTC))]).ids[0]

    def restore(self, name: str) -> int:
        """Go back to a savepoint: what came after it is processed again. Needs the lease, so no driver may run."""
        return self._on_spark().restore(name)

    def drop_savepoint(self, name: str) -> None:
        """Let go of what the savepoint holds on to."""
        self._catalog.commit([DropSavepoint(name)])

    def gc(self, dry_run: bool = False) -> tuple[Removal, ...]:
        """Remove what nobody needs any more: orphans of crashes, and what retention no longer keeps."""
        return self._on_spark().collect(dry_run)

    def history(self, source: str) -> tuple[HistoryRow, ...]:
        """Every change of the source's schema, oldest first."""
        return self._catalog.history(self._engine.source(source).name)

    def version(self, source: str) -> int:
        """The schema version in force."""
        return self._engine.source(source).version

    def dead_letters(self, source: str) -> Result:
        """The records of a source that could not be decoded, with their reasons."""
        name = self._engine.source(source).name
        return Result(frame=self._on_spark().dead_letters(name))

    def changes(self, relation: str, since_epoch: int = 0) -> Result:
        """What changed of a relation after an epoch: `_epoch`, `_op`, `_weight`, `_timestamp`, and its columns."""
        source = self._catalog.source(relation)
        found = self._on_spark().changes(source or self._engine.view(relation), since_epoch)
        return Result(found) if isinstance(found, pa.Table) else Result(frame=found)

    def last_change(self, view: str) -> int:
        """The last epoch that did something to a view, 0 if none did. Needs no Spark: for whoever waits for changes."""
        return self._catalog.last_advance(self._engine.view(view).id)

    def status(self) -> pa.Table:
        """How the home stands, whoever runs it."""
        return status(self._catalog)

    def schema(self, source: str) -> pa.Schema:
        """The schema in force, with column ids and defaults in its field metadata."""
        return self._engine.source(source).schema

    def notices(self) -> NoticeCounts:
        """How many notices of schema changes this Database has told, given up and still to tell."""
        return self._courier.counts()

    def close(self) -> None:
        """Notices that are under way have a few seconds to arrive."""
        self._courier.close()
        self._catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _on_spark(self) -> Runtime:
        from laminae.spark.runtime import Runtime

        if self._runtime is None:
            given: SparkSession | None = self._spark  # type: ignore[assignment]  # typed object so that no import is needed
            self._runtime = Runtime(self.home, self._catalog, self._engine, self._jars, self._config, given)
        return self._runtime

    def _find_schema(self, source: SourceRecord) -> FoundSchema:
        """What the table or the files of a source have beyond its schema; Spark starts only where they are JSON."""
        from laminae.spark.files.finder import FilesFinder
        from laminae.spark.lake.finder import TableFinder

        if option(source.options, "connector") in TABLES:
            return TableFinder().find(source)
        runtime = self._on_spark()
        return FilesFinder(self._catalog, str(runtime.storage.home), lambda: runtime.spark).find(source)

    def _answer(self, statement: ddl.Statement) -> Result:
        match statement:
            case ddl.Query():
                return self._query(statement.text)
            case ddl.DescribeSource():
                return Result(describe_source(self._engine.source(statement.source)))
            case ddl.Show():
                return Result(RELATIONS[SHOWN[statement.kind]](self._catalog))
            case ddl.Explain():
                lines = ((line.step, line.subject, line.detail) for line in self.explain(statement))
                return Result(table_of(EXPLAINED, lines))
            case _:
                done = self._engine.run(statement)
                if self._runtime is not None:
                    self._runtime.definitions_changed()
                return Result(self._done(done))

    def explain(self, statement: ddl.Explain) -> tuple[PlanLine, ...]:
        """The plan of the inner statement, made and not run."""
        inner = statement.statement
        match inner:
            case ddl.Query():
                reads = relations_of(parse_query(inner.text))
                return tuple(self._read_line(schema, name) for schema, name in reads)
            case ddl.DescribeSource():
                return (PlanLine("read", self._engine.source(inner.source).name, "its definition"),)
            case ddl.Show():
                return (PlanLine("read", f"{CATALOG}.{SHOWN[inner.kind]}", "from the catalog"),)
            case ddl.Explain():
                return self.explain(inner)
            case _:
                return explain(self._engine.plan(inner))

    def _query(self, text: str) -> Result:
        """Catalog relations alone are answered here; as soon as rows of a source are asked for, by Spark."""
        query = parse_query(text)
        reads = relations_of(query)
        if any(self._read_line(*read).detail == BY_SPARK for read in reads):
            return Result(frame=self._on_spark().query(query, list(reads)))
        tables = {(schema, name): RELATIONS[name.casefold()](self._catalog) for schema, name in reads}
        return Result(run_query(query, tables))

    def _read_line(self, schema: str, name: str) -> PlanLine:
        """What a query reads under this name; UnknownObject when there is nothing."""
        if schema.casefold() == CATALOG and name.casefold() in RELATIONS:
            return PlanLine("read", f"{CATALOG}.{name.casefold()}", "from the catalog, without Spark")
        if schema.casefold() == CATALOG and name.casefold() in SPARK_RELATIONS:
            return PlanLine("read", f"{CATALOG}.{name.casefold()}", BY_SPARK)
        if schema.casefold() == CHANGES:
            self._engine.readable(name)
            return PlanLine("read", f"changes of {name}", BY_SPARK)
        if schema:
            suggestion = f" ({CATALOG} has {', '.join((*RELATIONS, *SPARK_RELATIONS))})"
            raise UnknownObject(kind="relation", name=f"{schema}.{name}", suggestion=suggestion)
        self._engine.readable(name)
        return PlanLine("read", name, BY_SPARK)

    def _done(self, plan: Plan) -> pa.Table:
        changes = "; ".join(f"{change.column_name}: {describe_change(change)}" for change in plan.changes)
        detail = changes or "; ".join(plan.notes) or plan.action
        return table_of(DONE, [(STATUS[plan.outcome], plan.target, plan.version, detail)])


@dataclass(frozen=True, slots=True)
class _Finder:
    """Loads Spark's package only when a REFRESH asks for it."""

    database: Database

    def find(self, source: SourceRecord) -> FoundSchema:
        return self.database._find_schema(source)
