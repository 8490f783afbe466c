"""`connect()` and what it gives: a Database that answers SQL over one home. Wires the parts; decides nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa

from laminae import ddl
from laminae.catalog import open_catalog
from laminae.engine.engine import Engine
from laminae.engine.plan import Outcome, Plan, PlanLine, explain
from laminae.engine.query import run_query
from laminae.engine.relations import RELATIONS, describe_source, table_of
from laminae.errors import LaminaeError, NotAvailable, UnknownObject
from laminae.result import Result
from laminae.schema.describe import describe_change
from laminae.views.dependencies import parse_query, relations_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from laminae.catalog.model import HistoryRow
    from laminae.catalog.port import Catalog

CATALOG = "laminar_catalog"

DONE = pa.schema([("status", pa.string()), ("object", pa.string()), ("version", pa.int64()), ("detail", pa.string())])
EXPLAINED = pa.schema([("step", pa.string()), ("subject", pa.string()), ("detail", pa.string())])
STATUS = {Outcome.APPLY: "applied", Outcome.NOTHING: "unchanged", Outcome.WAIT: "waiting", Outcome.REFUSE: "refused"}
SHOWN = {ddl.ObjectKind.SOURCE: "sources", ddl.ObjectKind.VIEW: "views", ddl.ObjectKind.SINK: "sinks"}


def connect(
    home: str = ".laminae",
    spark: object | None = None,
    catalog: str | None = None,
    jars: Sequence[str] = (),
    config: Mapping[str, str] | None = None,
) -> Database:
    """Open a home: a directory, or a file system URI with its catalog in PostgreSQL. Starts no Spark.

    `spark` is a session to use instead of one of our own; `jars` and `config` go to the one we start.
    """
    return Database(str(home), open_catalog(str(home), catalog), spark, tuple(jars), dict(config or {}))


class Database:
    """One home. DDL is one transaction per statement; a text that does not parse changes nothing at all."""

    def __init__(
        self, home: str, catalog: Catalog, spark: object | None, jars: tuple[str, ...], config: dict[str, str]
    ) -> None:
        self.home = home
        self._catalog = catalog
        self._engine = Engine(catalog)
        self._spark, self._jars, self._config = spark, jars, config

    def sql(self, text: str) -> Result:
        """Run every statement of `text`; the result is that of the last one."""
        statements = ddl.parse(text)
        for statement in statements:
            if isinstance(statement, ddl.Query | ddl.CreateView):
                parse_query(statement.text if isinstance(statement, ddl.Query) else statement.query)
        result = Result(table_of(DONE, ()))
        for done, statement in enumerate(statements):
            try:
                result = Result(self._answer(statement))
            except LaminaeError as error:
                if done:
                    error.add_note(f"statement {done + 1} of {len(statements)}; the {done} before it were carried out")
                raise
        return result

    def history(self, source: str) -> tuple[HistoryRow, ...]:
        """Every change of the source's schema, oldest first."""
        return self._catalog.history(self._engine.source(source).name)

    def version(self, source: str) -> int:
        """The schema version in force."""
        return self._engine.source(source).version

    def schema(self, source: str) -> pa.Schema:
        """The schema in force, with column ids and defaults in its field metadata."""
        return self._engine.source(source).schema

    def close(self) -> None:
        self._catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _answer(self, statement: ddl.Statement) -> pa.Table:
        match statement:
            case ddl.Query():
                return self._query(statement.text)
            case ddl.DescribeSource():
                return describe_source(self._engine.source(statement.source))
            case ddl.Show():
                return RELATIONS[SHOWN[statement.kind]](self._catalog)
            case ddl.Explain():
                return table_of(EXPLAINED, ((line.step, line.subject, line.detail) for line in self.explain(statement)))
            case _:
                return self._done(self._engine.run(statement))

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

    def _query(self, text: str) -> pa.Table:
        query = parse_query(text)
        tables: dict[tuple[str, str], pa.Table] = {}
        for schema, name in relations_of(query):
            tables[schema, name] = self._relation(schema, name)
        return run_query(query, tables)

    def _relation(self, schema: str, name: str) -> pa.Table:
        self._read_line(schema, name)
        if schema:
            return RELATIONS[name.casefold()](self._catalog)
        raise NotAvailable(
            feature=f"SELECT from {name}",
            problem="reading rows of a source or view needs a running pipeline",
            advice=f"Definitions are in DESCRIBE SOURCE and {CATALOG}; rows come with the Spark pipelines.",
        )

    def _read_line(self, schema: str, name: str) -> PlanLine:
        """What a query reads under this name; UnknownObject when there is nothing."""
        if schema.casefold() == CATALOG and name.casefold() in RELATIONS:
            return PlanLine("read", f"{CATALOG}.{name.casefold()}", "from the catalog, without Spark")
        if schema:
            suggestion = f" ({CATALOG} has {', '.join(RELATIONS)})"
            raise UnknownObject(kind="relation", name=f"{schema}.{name}", suggestion=suggestion)
        self._engine.readable(name)
        return PlanLine("read", name, "its rows, by Spark")

    def _done(self, plan: Plan) -> pa.Table:
        changes = "; ".join(f"{change.column_name}: {describe_change(change)}" for change in plan.changes)
        detail = changes or "; ".join(plan.notes) or plan.action
        return table_of(DONE, [(STATUS[plan.outcome], plan.target, plan.version, detail)])
