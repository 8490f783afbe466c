"""Commands that run a home or look at a running one: run, status, dead-letters, repair."""

from __future__ import annotations

import signal
import time
from pathlib import Path  # noqa: TC003  # typer reads the annotations when it runs
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live

import laminae
from laminae.cli.options import CatalogUrl, Home, Json, existing, read_statements
from laminae.cli.output import answer_alone, as_json, rows_of
from laminae.render import grid, print_table

if TYPE_CHECKING:
    from rich.table import Table

    from laminae.spark.pipeline import Pipeline

REFRESH_SECONDS = 0.5
SHOWN = ("kind", "name", "state", "version", "epochs", "rows", "dead_letters", "lag", "detail")

running = typer.Typer()
letters = typer.Typer(no_args_is_help=True, help="Records that could not be decoded.")


@running.command()
def run(
    file: Annotated[Path | None, typer.Argument(help="Statements to run first.")] = None,
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    once: Annotated[bool, typer.Option("--once", help="Process what is there now, then end.")] = False,
    trigger: Annotated[str, typer.Option(help="How often to look for new records.")] = "1 second",
    json: Json = False,
) -> None:
    """Run every source of a home until Ctrl-C, which lets the epochs under way end.

    With --json, how the home stands at the end.
    """
    with laminae.connect(home, catalog=catalog) as db:
        if file is not None:
            db.sql(read_statements(file))
        with answer_alone(json):
            if once:
                db.run()
            else:
                _run_until_stopped(db, trigger)
        if json:
            typer.echo(as_json(rows_of(db.status())))
        elif once:
            Console().print(_picture(db, 0.0))


@running.command()
def status(home: Home = ".laminae", catalog: CatalogUrl = None, json: Json = False) -> None:
    """Show what each source has committed, how far each sink is, and who runs the home."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        table = db.status()
    if json:
        typer.echo(as_json(rows_of(table)))
    else:
        print_table(table)


@running.command()
def repair(
    source: Annotated[str, typer.Argument(help="Name of the source.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    json: Json = False,
) -> None:
    """Rebuild the Spark checkpoint of a source at the offsets of the catalog."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        batch = db.repair(source)
    after = "from the beginning" if batch is None else f"after batch {batch}"
    typer.echo(as_json({"source": source, "batch": batch}) if json else f"{source} goes on {after}")


@letters.command("list")
def list_letters(
    source: Annotated[str, typer.Argument(help="Name of the source.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    json: Json = False,
) -> None:
    """Show the dead letters of a source, with their reasons."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        table = db.dead_letters(source).arrow()
    if json:
        typer.echo(as_json(rows_of(table)))
    else:
        print_table(table)


@letters.command()
def replay(
    source: Annotated[str, typer.Argument(help="Name of the source.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    json: Json = False,
) -> None:
    """Put the dead letters of a source through again after a fix, exactly once."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db, answer_alone(json):
        done = db.replay_dead_letters(source)
    if json:
        typer.echo(as_json({"rows": done.rows, "refused": done.refused}))
    else:
        typer.echo(f"{done.rows} became rows, {done.refused} are dead letters still")
    if done.refused:
        raise typer.Exit(1)


def _run_until_stopped(db: laminae.Database, trigger: str) -> None:
    pipeline = db.start(trigger)
    # PySpark's own handler cancels the jobs of the epochs under way.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _show(db, pipeline)
    except KeyboardInterrupt:
        Console().print("stopping after the epochs under way ...", style="dim")
    finally:
        pipeline.stop()


def _show(db: laminae.Database, pipeline: Pipeline) -> None:
    rows, began = 0, time.monotonic()
    with Live(console=Console(), refresh_per_second=4) as live:
        while pipeline.is_running():
            now, total = time.monotonic(), sum(source.rows for source in pipeline.status())
            live.update(_picture(db, (total - rows) / max(now - began, 1e-9)))
            rows, began = total, now
            time.sleep(REFRESH_SECONDS)
    pipeline.raise_problems()


def _picture(db: laminae.Database, speed: float) -> Table:
    shown = grid(SHOWN, ([row[name] for name in SHOWN] for row in rows_of(db.status())))
    shown.caption = f"{speed:,.0f} rows/s"
    return shown
