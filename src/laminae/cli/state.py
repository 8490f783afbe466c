"""Commands for the state of Spark queries: check a checkpoint against a changed query, migrate it, inspect it."""

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
from laminae.api.render import grid
from laminae.catalog.opening import CATALOG_FILE
from laminae.cli.options import CatalogUrl, Json, existing
from laminae.cli.output import answer_alone, as_json
from laminae.errors import InvalidQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.query import Build
    from laminae.state.checkpoint.report import CheckReport

state = typer.Typer(no_args_is_help=True, help="Migrate the state of Spark queries to a changed schema.")

Checkpoint = Annotated[str, typer.Argument(help="checkpointLocation of a stopped query.")]
Query = Annotated[
    str, typer.Option("--query", help="app.py:build, a function that takes a session and returns the new query.")
]
FromQuery = Annotated[
    str | None,
    typer.Option("--from-query", help="old_app.py:build, the query that wrote the checkpoint: identifies aggregates."),
]
SameAggregates = Annotated[
    bool, typer.Option("--same-aggregates", help="Assert that the aggregates and their order are unchanged.")
]
AddAggregates = Annotated[bool, typer.Option("--add-aggregates", help="Allow new aggregates; they start empty.")]
Enable = Annotated[
    bool | None,
    typer.Option("--enable/--no-enable", help="state.schema-evolution.enable; running this command enables it."),
]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="name=value, a Spark setting; repeatable.")]


@state.command()
def check(
    checkpoint: Annotated[str, typer.Argument(help="checkpointLocation of a stopped query, or a home.")],
    query: Annotated[
        str | None, typer.Option("--query", help="app.py:build returns the new query; not used for a home.")
    ] = None,
    from_query: FromQuery = None,
    same_aggregates: SameAggregates = False,
    add_aggregates: AddAggregates = False,
    catalog: CatalogUrl = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Check whether a changed query can continue with the state of a checkpoint, or a home with its own.

    Exit code 1: no.
    """
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
    target: Annotated[str, typer.Argument(help="Directory of the new checkpoint; must not exist.")],
    query: Query,
    from_query: FromQuery = None,
    same_aggregates: SameAggregates = False,
    add_aggregates: AddAggregates = False,
    enable: Enable = None,
    home: Annotated[
        str | None,
        typer.Option("--home", envvar="LAMINAE_HOME", help="A home whose SET state.schema-evolution.enable applies."),
    ] = None,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Create a new checkpoint with the state of the old one, for a changed query. The old one is never modified."""
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
    samples: Annotated[int, typer.Option("--samples", min=0, help="Rows to show per store.")] = 3,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Show operators, schemas, row counts and sample rows of a checkpoint."""
    with answer_alone(json):
        inspection = laminae.state.inspect_checkpoint(checkpoint, spark=_session(conf), samples=samples)
    head = inspection.checkpoint
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
            for one in inspection.families
        ]
        facts = {"checkpoint": head.location, "query": head.query_id, "batch": head.batch, "provider": head.provider}
        typer.echo(as_json({**facts, "stores": families}))
        return
    console = Console()
    typer.echo(f"query {head.query_id}, batch {head.batch} is the last committed")
    for one in inspection.families:
        typer.echo(f"\noperator {one.operator} {one.operator_name}, store {one.store}, family {one.family}")
        typer.echo(f"  key   {one.key}\n  value {one.value}\n  {one.rows:,} rows in {one.partitions} partitions")
        if one.samples:
            console.print(grid(("key", "value"), one.samples))


def _check_home(home: str, catalog: str | None, conf: list[str] | None, is_json: bool) -> None:
    if catalog is None and not (Path(home).expanduser() / CATALOG_FILE).is_file():
        raise typer.BadParameter(
            f"{home} is not a home; for the checkpoint of a query, pass the new query with --query"
        )
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
    """Load a function from a file, `app.py:build`."""
    path, _, name = named.rpartition(":")
    file = Path(path)
    if not path or not file.is_file():
        raise InvalidQuery(query=named, problem="there is no such file", advice="Pass it as path/to/app.py:build.")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # any error in the user's file is reported under one code
        problem_text = f"the file raised {type(problem).__name__}: {problem}"
        raise InvalidQuery(query=named, problem=problem_text, advice="Fix the file. Nothing was written.") from problem
    finally:
        sys.path.pop(0)
    function = getattr(module, name, None)
    if not callable(function):
        raise InvalidQuery(
            query=named, problem=f"it has no function {name}", advice="Pass a function that takes a session."
        )
    # Its result is validated when it is called.
    return cast("Build", function)


def _session(conf: list[str] | None) -> SparkSession:
    from laminae.spark.checkpoint.session import started_session

    pairs = [one.partition("=") for one in conf or ()]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise typer.BadParameter(f"--conf takes name=value, not {wrong[0]}")
    return started_session({name: value for name, _, value in pairs})


@contextmanager
def _steps(is_json: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal, and nothing otherwise."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console)
    bar.disable = is_json or not console.is_terminal
    with bar:
        task = bar.add_task("", total=None)
        yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)
