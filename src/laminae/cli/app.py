"""The commands that define and query (sql, history, explain, doctor, demo), and the assembled command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path  # noqa: TC003  # typer reads the annotations at runtime
from typing import Annotated, NoReturn

import typer
from rich.console import Console

import laminae
from laminae import sql as ddl
from laminae.api.render import grid, history_picture, print_table
from laminae.cli.demo import run_demo
from laminae.cli.doctor import findings, spark_connectors
from laminae.cli.options import CatalogUrl, Home, Json, existing, read_statements
from laminae.cli.output import answer_alone, as_json, rows_of
from laminae.cli.run import letters, running
from laminae.cli.savepoints import keeping, savepoints
from laminae.cli.state import state
from laminae.cli.watch import watching
from laminae.errors import LaminaeError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Live schema evolution for Spark streams.")

# Wrong usage: the statement itself is at fault (exit code 2). Every other refusal is a valid negative result (1).
WRONG_USE = ("DDL_", "UNSUPPORTED_", "UNKNOWN_", "INVALID_", "DUPLICATE_", "SECRET_", "NOT_AVAILABLE", "QUERY_FAILED")

# Recent versions of typer bundle click and export no public name for the base class of BadParameter.
USAGE_ERROR: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(laminae.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show Spark's messages.")] = False,
) -> None:
    """Live schema evolution for Spark streams."""
    if verbose:
        os.environ["LAMINAE_VERBOSE"] = "1"


@app.command()
def sql(
    text: Annotated[str | None, typer.Argument(help="Statements separated by ';', read from stdin if absent.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the statements from a file.")] = None,
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    json: Json = False,
) -> None:
    """Run SQL statements and print the result of the last one."""
    if text is not None and file is not None:
        raise typer.BadParameter("pass either statements or --file, not both")
    statements = text if text is not None else read_statements(file)
    with laminae.connect(home, catalog=catalog) as db:
        answer = db.sql(statements).arrow()
    if json:
        typer.echo(as_json(rows_of(answer)))
    else:
        print_table(answer)


@app.command()
def history(
    source: Annotated[str, typer.Argument(help="Name of the source.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    json: Json = False,
) -> None:
    """Show every change of a source's schema, oldest first."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        rows = db.history(source)
    if json:
        typer.echo(as_json([row._asdict() for row in rows]))
    else:
        Console().print(history_picture(rows))


@app.command()
def explain(
    text: Annotated[str, typer.Argument(help="One statement.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    json: Json = False,
) -> None:
    """Show what a statement would do, without doing it. Exit code 1 if it would be refused."""
    statements = ddl.parse(text)
    if len(statements) != 1:
        raise typer.BadParameter("pass exactly one statement")
    (statement,) = statements
    explained = statement if isinstance(statement, ddl.Explain | ddl.ExplainEpoch) else ddl.Explain(statement)
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        lines = db.explain(explained)
    if json:
        typer.echo(as_json([{"step": line.step, "subject": line.subject, "detail": line.detail} for line in lines]))
    else:
        Console().print(grid(("step", "subject", "detail"), ((line.step, line.subject, line.detail) for line in lines)))
    if any(line.step == "refusal" for line in lines):
        raise typer.Exit(1)


app.add_typer(running)
app.add_typer(watching)
app.add_typer(keeping)
app.add_typer(letters, name="dead-letters")
app.add_typer(savepoints, name="savepoint")
app.add_typer(state, name="state")


@app.command()
def doctor(
    spark: Annotated[bool, typer.Option(help="Start Spark to check which connectors load.")] = True,
    json: Json = False,
) -> None:
    """Report the installed packages, Java and Spark, which connectors actually load, and what is missing."""
    results = findings()
    if spark and not any(f.is_required and f.advice for f in results):
        with answer_alone(json), Console(stderr=True).status("starting Spark"):
            results += spark_connectors()
    if json:
        typer.echo(as_json([{"part": f.part, "state": f.state, "advice": f.advice} for f in results]))
    else:
        Console().print(grid(("part", "found", "advice"), ((f.part, f.state, f.advice) for f in results)))
    if any(f.is_required and f.advice for f in results):
        raise typer.Exit(1)


@app.command()
def demo() -> None:
    """Show schemas evolving: verdicts, refusals and history."""
    run_demo(Console())


def main() -> None:
    """Run the command line; an error becomes its text and an exit code."""
    is_json = "--json" in sys.argv
    try:
        raise SystemExit(app(prog_name="laminae", standalone_mode=not is_json) or 0)
    except LaminaeError as error:
        _fail(error, is_json)
    except USAGE_ERROR as error:
        message = error.format_message()
        remedy = f"{error.ctx.command_path if error.ctx else 'laminae'} --help lists the arguments."
        typer.echo(as_json({"error": "WRONG_USE", "message": message, "remedy": remedy}))
        error.show()
        raise SystemExit(error.exit_code) from None


def _fail(error: LaminaeError, is_json: bool) -> NoReturn:
    if is_json:
        typer.echo(as_json({"error": error.code, "message": error.message, "remedy": error.remedy}))
    console = Console(stderr=True)
    console.print(f"[{error.code}]", style="bold red", markup=False)
    console.print(error.message, markup=False, highlight=False)
    console.print(f"remedy: {error.remedy}", style="cyan", markup=False, highlight=False)
    for note in getattr(error, "__notes__", ()):
        console.print(f"note: {note}", markup=False, highlight=False)
    raise SystemExit(2 if error.code.startswith(WRONG_USE) else 1)
