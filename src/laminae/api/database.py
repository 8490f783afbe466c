"""`connect()` and the Database it returns, which runs SQL over one home. Wires the parts; contains no logic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from laminae import sql as ddl
from laminae.api.arguments import epoch_number, page, refuse_connect_arguments, savepoint_name
from laminae.api.result import Result
from laminae.catalog import open_catalog
from laminae.catalog.location import find_home
from laminae.catalog.updates import DropSavepoint, PutSavepoint
from laminae.engine.catalog_query.duckdb_dialect import fits, translatable
from laminae.engine.catalog_query.introspection import RELATIONS, describe_source, table_of
from laminae.engine.catalog_query.query import run_query
from laminae.engine.engine import BY_CONNECTOR, Engine
from laminae.engine.epochs.epoch_plan import SourceCache
from laminae.engine.epochs.epoch_stages import explain_epoch
from laminae.engine.options.rows import is_duration
from laminae.engine.plan import Outcome, Plan, PlanLine, explain
from laminae.engine.status import status
from laminae.engine.writer_schemas.binding import SubjectFinder
from laminae.errors import HomeUnwritable, InvalidOption, LaminaeError, UnknownObject
from laminae.notifications import Dispatcher
from laminae.schema.change import describe_change
from laminae.views.dependencies import CHANGES, parse_query, relations_of, with_changes_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from pyspark.sql import SparkSession

    from laminae.catalog.model import HistoryRow, SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.codec.row_check import Inserted
    from laminae.engine.ports import FoundSchema, SchemaFinder
    from laminae.engine.retention.source_retention import Removal
    from laminae.notifications import NoticeCounts
    from laminae.notifications.dispatcher import OnChange
    from laminae.schema.column import Path
    from laminae.spark.driver.pipeline import Pipeline
    from laminae.spark.driver.runtime import Runtime
    from laminae.spark.epoch.metrics import OnMetric
    from laminae.spark.epoch.runner import Replayed

CATALOG = "laminar_catalog"
SPARK_RELATIONS = ("dead_letters", "late_rows")
BY_SPARK = "its rows, by Spark"

DONE = pa.schema([("status", pa.string()), ("object", pa.string()), ("version", pa.int64()), ("detail", pa.string())])
EXPLAINED = pa.schema([("step", pa.string()), ("subject", pa.string()), ("detail", pa.string())])
STATUS = {
    Outcome.APPLY: "applied",
    Outcome.NOTHING: "unchanged",
    Outcome.WAIT: "waiting",
    Outcome.REFUSE: "refused",
    Outcome.REJECT: "rejected",
}
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
    """Open a home: a directory, or a file system URI with its catalog in PostgreSQL. Does not start Spark.

    `spark` is an existing session to use; otherwise one is started with `jars` and `config`. With `from_savepoint` the
    home is first restored to that savepoint, as by `restore`. `on_change` is called, on a separate thread, with a
    `SchemaNotice` for each schema change that this Database makes or its pipeline finds.
    """
    if not isinstance(home, str | PathLike):
        raise HomeUnwritable(location=repr(home), problem="this is not the name of a directory")
    refuse_connect_arguments(spark, catalog, jars, config, on_change)
    db = Database(str(home), open_catalog(str(home), catalog), spark, tuple(jars), dict(config or {}), on_change)
    if from_savepoint is not None:
        try:
            db.restore(from_savepoint)
        except BaseException:
            db.close()
            raise
    return db


class Database:
    """One home. Each DDL statement is one transaction; a text that does not parse changes nothing at all."""

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
        self._dispatcher = Dispatcher(on_change)
        finders: dict[str, SchemaFinder] = {BY_CONNECTOR: _Finder(self), "registry": SubjectFinder(catalog)}
        self._engine = Engine(
            catalog,
            finders,
            on_change=self._dispatcher.dispatch,
            judge_view=self._judge_view,
            value_beyond=self._value_beyond,
        )
        self._spark, self._jars, self._config = spark, jars, config
        self._runtime: Runtime | None = None

    def sql(self, text: str) -> Result:
        """Run every statement of `text` and return the result of the last one."""
        if not isinstance(text, str):
            raise InvalidOption(option="text", owner="sql", problem=f"it is {type(text).__name__}", advice="Give text.")
        statements = ddl.parse(text)
        for statement in statements:
            self._refuse_unreadable(statement)
        result = Result(table_of(DONE, ()))
        for done, statement in enumerate(statements):
            try:
                result = self._answer(statement)
            except LaminaeError as error:
                if done:
                    error.add_note(f"statement {done + 1} of {len(statements)}; the {done} before it were executed")
                raise
        return result

    def insert(self, source: str, rows: object, strict: bool = False) -> Inserted:
        """Insert rows (dicts, an Arrow table or a pandas frame) into a push source and return how many there were.

        `refused` of the result lists rows that will become dead letters. With `strict`, the first of them is raised as
        SchemaMismatch, and no row is stored.
        """
        return self._on_spark().insert(self._engine.source(source), rows, strict)

    def start(self, trigger: str = "1 second", on_metric: OnMetric | None = None) -> Pipeline:
        """Run every source of the home until `stop()`. Takes the lease; `LeaseHeld` names its current holder.

        `on_metric` is called for each committed epoch and each of Spark's progress reports.
        """
        if not isinstance(trigger, str) or not is_duration(trigger):
            raise InvalidOption(
                option="trigger",
                owner="start",
                problem=f"{trigger!r} does not fit",
                advice="Pass an interval such as '1 second'.",
            )
        return self._on_spark().start(trigger, on_metric)

    def run(self) -> None:
        """Process and deliver all available data, then return."""
        self._on_spark().run()

    def replay_dead_letters(self, source: str) -> Replayed:
        """Replay the dead letters of a source, exactly once, with the current schema."""
        return self._on_spark().replay(self._engine.source(source).name)

    def repair(self, source: str) -> int | None:
        """Rebuild the Spark checkpoint of a source at the catalog's offsets; return the last batch id."""
        return self._on_spark().repair(self._engine.source(source))

    def savepoint(self, name: str) -> int:
        """Pin the last committed epoch under a name and return its number. A running pipeline continues."""
        return self._catalog.commit([PutSavepoint(savepoint_name(name), datetime.now(UTC))]).ids[0]

    def restore(self, name: str) -> int:
        """Restore a savepoint: everything after it is processed again. Needs the lease, so no driver may be running."""
        return self._on_spark().restore(savepoint_name(name))

    def drop_savepoint(self, name: str) -> None:
        """Delete a savepoint, so that retention may remove what only it needed."""
        self._catalog.commit([DropSavepoint(savepoint_name(name))])

    def gc(self, dry_run: bool = False) -> tuple[Removal, ...]:
        """Delete unneeded files: orphans of crashes, and data past its retention."""
        return self._on_spark().collect(dry_run)

    def history(self, source: str) -> tuple[HistoryRow, ...]:
        """Every change of the source's schema, oldest first."""
        return self._catalog.history(self._engine.source(source).name)

    def version(self, source: str) -> int:
        """The current schema version."""
        return self._engine.source(source).version

    def dead_letters(self, source: str, limit: int | None = None, offset: int = 0) -> Result:
        """The records of a source that could not be decoded, with their reasons, oldest first.

        With `limit`, at most that many after the first `offset`; these are read from their files, without Spark.
        """
        name = self._engine.source(source).name
        if limit is None and not offset:
            return Result(frame=self._on_spark().dead_letters(name))
        from laminae.spark.query.dead_letter_files import letters_of

        wanted = page(limit, offset)
        return Result(letters_of(self._catalog, find_home(self.home).directory, name, wanted))

    def changes(self, relation: str, since_epoch: int = 0) -> Result:
        """The changes of a relation after an epoch: `_epoch`, `_op`, `_weight`, `_timestamp`, and its columns."""
        source = self._catalog.source(relation) if isinstance(relation, str) else None
        rows = self._on_spark().changes(source or self._engine.view(relation), epoch_number(since_epoch))
        return Result(rows) if isinstance(rows, pa.Table) else Result(frame=rows)

    def last_change(self, view: str) -> int:
        """The last epoch that changed a view, 0 if none did. Needs no Spark: for callers that poll for changes."""
        return self._catalog.last_advance(self._engine.view(view).id)

    def status(self) -> pa.Table:
        """The status of the home, no matter which process runs it."""
        return status(self._catalog)

    def schema(self, source: str) -> pa.Schema:
        """The current schema, with column ids and defaults in its field metadata."""
        return self._engine.source(source).schema

    def notices(self) -> NoticeCounts:
        """How many notices of schema changes this Database has delivered, given up and still has to deliver."""
        return self._dispatcher.counts()

    def close(self) -> None:
        """Close the database. Notices in flight get a few seconds to be delivered."""
        self._dispatcher.close()
        self._catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _on_spark(self) -> Runtime:
        from laminae.spark.driver.runtime import Runtime

        if self._runtime is None:
            session: SparkSession | None = self._spark  # type: ignore[assignment]  # typed object so that no import is needed
            self._runtime = Runtime(self.home, self._catalog, self._engine, self._jars, self._config, session)
        return self._runtime

    def _judge_view(self, name: str, query: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> None:
        """Spark's own analysis of a view, if a session exists already: none is started for it."""
        if self._spark is None and (self._runtime is None or not self._runtime.has_session):
            return
        self._on_spark().judge_view(name, query, sources, views)

    def _value_beyond(self, source: SourceRecord, path: Path, most: int) -> int | None:
        """A value of a column whose magnitude is above `most`. Starts Spark, as the rows have to be read."""
        return self._on_spark().value_beyond(source, path, most)

    def _find_schema(self, source: SourceRecord) -> FoundSchema:
        """What the table or the files of a source have in addition to its schema. Starts Spark only for JSON files."""
        from laminae.spark.sources.registry import open_finder

        def home() -> str:
            return str(self._on_spark().storage.home)

        return open_finder(source, self._catalog, home, lambda: self._on_spark().spark).find(source)

    def _answer(self, statement: ddl.Statement) -> Result:
        match statement:
            case ddl.Query():
                return self._query(statement.text)
            case ddl.DescribeSource():
                return Result(describe_source(self._engine.source(statement.source)))
            case ddl.Show():
                return Result(RELATIONS[SHOWN[statement.kind]](self._catalog))
            case ddl.Explain() | ddl.ExplainEpoch():
                lines = ((line.step, line.subject, line.detail) for line in self.explain(statement))
                return Result(table_of(EXPLAINED, lines))
            case _:
                done = self._engine.run(statement)
                if self._runtime is not None:
                    self._runtime.definitions_changed()
                return Result(self._done(done))

    def explain(self, statement: ddl.Explain | ddl.ExplainEpoch) -> tuple[PlanLine, ...]:
        """The plan of the inner statement, without running it."""
        inner = statement.statement if isinstance(statement, ddl.Explain) else statement
        match inner:
            case ddl.Query():
                return tuple(self._read_line(schema, name) for schema, name in self._reads(inner.text))
            case ddl.DescribeSource():
                return (PlanLine("read", self._engine.source(inner.source).name, "its definition"),)
            case ddl.Show():
                return (PlanLine("read", f"{CATALOG}.{SHOWN[inner.kind]}", "from the catalog"),)
            case ddl.ExplainEpoch():
                source = self._engine.source(inner.source)
                cache = None if self._runtime is None else self._runtime.source_cache(source.id)
                return explain_epoch(self._catalog, source, cache or SourceCache())
            case ddl.Explain():
                return self.explain(inner)
            case _:
                return explain(self._engine.plan(inner))

    def _query(self, text: str) -> Result:
        """Run by Spark as written; without Spark if the query is simple and reads only catalog relations."""
        query = translatable(text)
        if query is not None:
            reads = relations_of(query)
            if all(self._read_line(*read).detail != BY_SPARK for read in reads):
                tables = {(schema, name): RELATIONS[name.casefold()](self._catalog) for schema, name in reads}
                if fits(query, tables):
                    return Result(run_query(query, tables))
        parsed = self._on_spark().parse(with_changes_named(text))
        for relation in parsed.relations:
            self._read_line(".".join(relation.parts[:-1]), relation.parts[-1])
        return Result(frame=self._on_spark().query(parsed))

    def _reads(self, text: str) -> tuple[tuple[str, str], ...]:
        """The relations that a SELECT reads, in order of appearance."""
        query = translatable(text)
        if query is not None:
            return relations_of(query)
        parsed = self._on_spark().explained(with_changes_named(text))
        names = ((".".join(relation.parts[:-1]), relation.parts[-1]) for relation in parsed.relations)
        return tuple(dict.fromkeys(names))

    def _refuse_unreadable(self, statement: ddl.Statement) -> None:
        """Check the syntax before any statement is run. Starts Spark only for queries that no other parser accepts."""
        if isinstance(statement, ddl.CreateView):
            parse_query(statement.query)
        elif isinstance(statement, ddl.Query):
            try:
                parse_query(statement.text)
            except LaminaeError:
                self._on_spark().parse(with_changes_named(statement.text))

    def _read_line(self, schema: str, name: str) -> PlanLine:
        """What a query reads under this name; UnknownObject if it does not exist."""
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
        detail = plan.summary or "; ".join(filter(None, (changes, *plan.notes))) or plan.action
        return table_of(DONE, [(STATUS[plan.outcome], plan.target, plan.version, detail)])


@dataclass(frozen=True, slots=True)
class _Finder:
    """Imports the Spark package only when a REFRESH needs it."""

    database: Database

    def find(self, source: SourceRecord) -> FoundSchema:
        return self.database._find_schema(source)
