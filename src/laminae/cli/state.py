"""Commands for the state of Spark queries: check a checkpoint against a changed query, migrate it, look inside."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

import laminae.state
from laminae.catalog.opening import CATALOG_FILE
from laminae.cli.options import CatalogUrl, Json, existing
from laminae.cli.output import answer_alone, as_json
from laminae.errors import InvalidQuery
from laminae.render import grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.query import Build
    from laminae.state.checkpoint.report import CheckReport

state = typer.Typer(no_args_is_help=True, help="State of Spark queries that survives a changed schema.")

Checkpoint = Annotated[str, typer.Argument(help="checkpointLocation of a query that was stopped.")]
Query = Annotated[str, typer.Option("--query", help="app.py:build, a function of a session that makes the new query.")]
FromQuery = Annotated[
    str | None, typer.Option("--from-query", help="old_app.py:build, the query as it ran: tells aggregates apart.")
]
SameAggregates = Annotated[
    bool, typer.Option("--same-aggregates", help="Vouch that the aggregates and their order have not changed.")
]
AddAggregates = Annotated[bool, typer.Option("--add-aggregates", help="Allow new aggregates; they start empty.")]
Enable = Annotated[
    bool | None, typer.Option("--enable/--no-enable", help="state.schema-evolution.enable; asking counts as yes.")
]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="name=value, a setting of Spark's; may be repeated.")]


@state.command()
def check(
    checkpoint: Annotated[str, typer.Argument(help="checkpointLocation of a query that was stopped, or a home.")],
    query: Annotated[
        str | None, typer.Option("--query", help="app.py:build makes the new query; a home has none.")
    ] = None,
    from_query: FromQuery = None,
    same_aggregates: SameAggregates = False,
    add_aggregates: AddAggregates = False,
    catalog: CatalogUrl = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Say whether a changed query can go on with the state of a checkpoint, or a home with its own. Exit code 1: no."""
    if query is None:
        _check_home(checkpoint, catalog, conf, json)
        return
    build, ran = _function(query), None if from_query is None else _function(from_query)
    with answer_alone(json), _steps(json) as on_step:
        report = laminae.state.check_checkpoint(
            checkpoint,
            build,
            spark=_session(conf),
            from_build=ran,
            same_aggregates=same_aggregates,
            add_aggregates=add_aggregates,
            on_step=on_step,
        )
    _show(report, json)
    if not report.is_compatible:
        raise typer.Exit(1)


@state.command()
def migrate(
    checkpoint: Checkpoint,
    target: Annotated[str, typer.Argument(help="Where the new checkpoint is made; must not exist.")],
    query: Query,
    from_query: FromQuery = None,
    same_aggregates: SameAggregates = False,
    add_aggregates: AddAggregates = False,
    enable: Enable = None,
    home: Annotated[
        str | None, typer.Option("--home", envvar="LAMINAE_HOME", help="A home whose SET of the setting counts.")
    ] = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Make a new checkpoint with the state of the old one, for a changed query. The old one is never written."""
    build, ran = _function(query), None if from_query is None else _function(from_query)
    with answer_alone(json), _steps(json) as on_step:
        migrated = laminae.state.migrate_checkpoint(
            checkpoint,
            target,
            build,
            spark=_session(conf),
            from_build=ran,
            same_aggregates=same_aggregates,
            add_aggregates=add_aggregates,
            enable=enable,
            home=None if home is None else existing(home, None),
            on_step=on_step,
        )
    if json:
        typer.echo(as_json({**migrated.report.to_dict(), "target": migrated.checkpoint, "rows": migrated.rows}))
        return
    _show(migrated.report, is_json=False)
    typer.echo(f"{migrated.rows:,} rows are in {migrated.checkpoint}: start the changed query there")


@state.command()
def inspect(
    checkpoint: Checkpoint,
    samples: Annotated[int, typer.Option("--samples", min=0, help="Rows to show of each store.")] = 3,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Show operators, schemas, row counts and sample rows of a checkpoint."""
    with answer_alone(json):
        found = laminae.state.inspect_checkpoint(checkpoint, spark=_session(conf), samples=samples)
    head = found.checkpoint
    if json:
        families = [
            {
                "operator": one.operator,
                "operator_name": one.operator_name,
                "store": one.store,
                "family": one.family,
                "partitions": one.partitions,
                "key": one.key,
                "value": one.value,
                "rows": one.rows,
                "samples": [{"key": key, "value": value} for key, value in one.samples],
            }
            for one in found.families
        ]
        facts = {"checkpoint": head.location, "query": head.query_id, "batch": head.batch, "provider": head.provider}
        typer.echo(as_json({**facts, "stores": families}))
        return
    console = Console()
    typer.echo(f"query {head.query_id}, batch {head.batch} is the last committed")
    for one in found.families:
        typer.echo(f"\noperator {one.operator} {one.operator_name}, store {one.store}, family {one.family}")
        typer.echo(f"  key   {one.key}\n  value {one.value}\n  {one.rows:,} rows in {one.partitions} partitions")
        if one.samples:
            console.print(grid(("key", "value"), one.samples))


def _check_home(home: str, catalog: str | None, conf: list[str] | None, is_json: bool) -> None:
    if catalog is None and not (Path(home).expanduser() / CATALOG_FILE).is_file():
        raise typer.BadParameter(f"{home} is no home; for the checkpoint of a query, name the new query with --query")
    with answer_alone(is_json):
        report = laminae.state.check_home(home, catalog=catalog, spark=_session(conf))
    if is_json:
        typer.echo(as_json(report.to_dict()))
    else:
        heads = ("place", "relation", "operator", "trace", "runs", "rows", "verdict", "problem")
        rows = [
            (one.place, one.relation, one.operator, one.trace, one.runs, f"{one.rows:,}", one.kind.value, one.problem)
            for one in report.traces
        ]
        if rows:
            Console().print(grid(heads, rows))
        typer.echo(f"{report.home}: {report.kind.value}")
    if not report.is_compatible:
        raise typer.Exit(1)


def _show(report: CheckReport, is_json: bool) -> None:
    if is_json:
        typer.echo(as_json(report.to_dict()))
        return
    console = Console()
    rows = [
        (plan.path, "" if plan.rows is None else f"{plan.rows:,}", line.path, line.origin)
        for plan in report.families
        for line in plan.fields
    ]
    if rows:
        console.print(grid(("state", "rows", "field", "comes from"), rows))
    for note in report.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    for reason in report.reasons:
        console.print(f"refused: {reason.path}: {reason.problem}", style="red", markup=False, highlight=False)
        console.print(f"  {reason.remedy}", style="cyan", markup=False, highlight=False)
    console.print(f"{report.checkpoint} at batch {report.batch}: {report.kind.value}", markup=False, highlight=False)


def _function(named: str) -> Build:
    """The function of a file, `app.py:build`."""
    path, _, name = named.rpartition(":")
    file = Path(path)
    if not path or not file.is_file():
        raise InvalidQuery(query=named, problem="there is no such file", advice="Name it as path/to/app.py:build.")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # whatever a person's file raises is told under one code
        told = f"the file raised {type(problem).__name__}: {problem}"
        raise InvalidQuery(query=named, problem=told, advice="Mend the file; nothing was written.") from problem
    finally:
        sys.path.pop(0)
    found = getattr(module, name, None)
    if not callable(found):
        raise InvalidQuery(query=named, problem=f"it has no function {name}", advice="Name one that takes a session.")
    # What it makes is judged when it is called.
    return cast("Build", found)


def _session(conf: list[str] | None) -> SparkSession:
    from laminae.spark.checkpoint.session import started_session

    pairs = [one.partition("=") for one in conf or ()]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise typer.BadParameter(f"--conf takes name=value, not {wrong[0]}")
    return started_session({name: value for name, _, value in pairs})


@contextmanager
def _steps(is_json: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A line that moves on a terminal, and nothing where nobody looks."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console)
    bar.disable = is_json or not console.is_terminal
    with bar:
        task = bar.add_task("", total=None)
        yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)
