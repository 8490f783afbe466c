"""Commands that run a home or show a running one: run, status, dead-letters, repair."""

from __future__ import annotations

import signal
import time
from pathlib import Path  # noqa: TC003  # typer reads the annotations at runtime
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer
from rich.console import Console
from rich.live import Live

import laminae
from laminae.api.python_values import valid_text
from laminae.api.render import print_table, status_picture
from laminae.catalog.model import TROUBLED_STATES
from laminae.cli.options import CatalogUrl, Home, Json, existing, read_statements
from laminae.cli.output import answer_alone, as_json, rows_of
from laminae.errors import DeliveryFailed

if TYPE_CHECKING:
    from rich.table import Table

    from laminae.spark.driver.pipeline import Pipeline

REFRESH_SECONDS = 0.5

running = typer.Typer()
letters = typer.Typer(no_args_is_help=True, help="Records that could not be decoded.")


@running.command()
def run(
    file: Annotated[Path | None, typer.Argument(help="Statements to run first.")] = None,
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    once: Annotated[bool, typer.Option("--once", help="Process all available records, then exit.")] = False,
    trigger: Annotated[str, typer.Option(help="Interval between epochs.")] = "1 second",
    json: Json = False,
) -> None:
    """Run every source of a home until Ctrl-C, which lets the current epochs finish.

    With --json, print the status of the home at the end. With --once, exit code 1 if a view or a sink has failed.
    """
    undelivered: DeliveryFailed | None = None
    with laminae.connect(home, catalog=catalog) as db:
        if file is not None:
            db.sql(read_statements(file))
        with answer_alone(json):
            try:
                if once:
                    db.run()
                else:
                    _run_until_stopped(db, trigger)
            except DeliveryFailed as problem:
                # The status is shown first: everything else has succeeded.
                undelivered = problem
        rows = rows_of(db.status())
    if json:
        typer.echo(as_json(rows))
    elif once:
        Console().print(status_picture(rows))
    if undelivered is not None:
        Console(stderr=True).print(str(undelivered), style="red", markup=False, highlight=False)
    if (once and any(row["state"] in TROUBLED_STATES for row in rows)) or undelivered is not None:
        raise typer.Exit(1)


@running.command()
def status(home: Home = ".laminae", catalog: CatalogUrl = None, json: Json = False) -> None:
    """Show what each source has committed, the progress of each sink, and which process runs the home."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        table = db.status()
    if json:
        typer.echo(as_json(rows_of(table)))
    else:
        Console().print(status_picture(rows_of(table)))


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
    typer.echo(as_json({"source": source, "batch": batch}) if json else f"{source} resumes {after}")


@letters.command("list")
def list_letters(
    source: Annotated[str, typer.Argument(help="Name of the source.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of records.")] = 50,
    offset: Annotated[int, typer.Option(min=0, help="Number of oldest records to skip.")] = 0,
    json: Json = False,
) -> None:
    """Show the dead letters of a source, oldest first, with their reasons. Needs no Spark."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        # One more than is shown tells whether there are more.
        table = db.dead_letters(source, limit + 1, offset).arrow()
    if json:
        typer.echo(as_json(rows_of(table.slice(0, limit))))
        return
    print_table(_readable(table.slice(0, limit)), limit)
    if table.num_rows > limit:
        typer.echo(f"... more with --offset {offset + limit}")


def _readable(letters: pa.Table) -> pa.Table:
    """The record as text, where it is text, and without columns that are empty in every dead letter."""
    records = pa.chunked_array([chunk.view(pa.string()) for chunk in letters["value"].chunks], pa.string())
    shown = valid_text(letters.set_column(letters.schema.get_field_index("value"), "record", records))
    return shown.select([name for name in shown.column_names if shown[name].null_count < shown.num_rows])


@letters.command()
def replay(
    source: Annotated[str, typer.Argument(help="Name of the source.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    json: Json = False,
) -> None:
    """Replay the dead letters of a source after a fix, exactly once."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db, answer_alone(json):
        done = db.replay_dead_letters(source)
    if json:
        typer.echo(as_json({"rows": done.rows, "refused": done.refused}))
    else:
        typer.echo(f"{done.rows} became rows, {done.refused} are still dead letters")
    if done.refused:
        raise typer.Exit(1)


def _run_until_stopped(db: laminae.Database, trigger: str) -> None:
    pipeline = db.start(trigger)
    # PySpark's own SIGINT handler would cancel the jobs of the current epochs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _show(db, pipeline)
    except KeyboardInterrupt:
        Console().print("stopping after the current epochs ...", style="dim")
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
    shown = status_picture(rows_of(db.status()))
    shown.caption = f"{speed:,.0f} rows/s"
    return shown
