"""The watch command: prints the changelog of a view while another process runs the home."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

import laminae
from laminae.cli.options import CatalogUrl, Home, Json, existing
from laminae.cli.output import as_json_line, rows_of
from laminae.errors import ChangelogExpired

if TYPE_CHECKING:
    import pyarrow as pa

POLL_SECONDS = 0.2
OWN = ("_epoch", "_op", "_weight", "_timestamp")
STYLES = {"+I": "green", "+U": "green", "-U": "dim", "-D": "red"}

watching = typer.Typer()


@watching.command()
def watch(
    view: Annotated[str, typer.Argument(help="Name of the materialized view.")],
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    since: Annotated[int | None, typer.Option(min=0, help="Start after this epoch instead of the newest.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the available changes, then exit.")] = False,
    json: Json = False,
) -> None:
    """Print the changes of a view as they are committed, until Ctrl-C; with --json one object per line."""
    # A shell starts background processes with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        try:
            if once:
                _print(_changes(db, view, since), json)
            else:
                _follow(db, view, db.last_change(view) if since is None else since, json)
        except KeyboardInterrupt:
            # The normal way to end. The output is complete: an epoch is read entirely before any of it is printed.
            return


def _follow(db: laminae.Database, view: str, since: int, is_json: bool) -> None:
    while True:
        if (last := db.last_change(view)) > since:
            changes = db.changes(view, since).arrow()
            _print(changes, is_json)
            # An epoch may change a view's state but none of its rows, and another epoch may have been committed since.
            since = max([last, *changes.column("_epoch").to_pylist()])
        time.sleep(POLL_SECONDS)


def _changes(db: laminae.Database, view: str, since: int | None) -> pa.Table | None:
    """The available changes, by default from the first one that retention has kept."""
    if not db.last_change(view):
        return None
    try:
        return db.changes(view, since or 0).arrow()
    except ChangelogExpired as expired:
        if since is not None:
            raise
        return db.changes(view, int(str(expired.params["first"]))).arrow()


def _print(changes: pa.Table | None, is_json: bool) -> None:
    console = Console()
    for row in rows_of(changes) if changes is not None else ():
        if is_json:
            typer.echo(as_json_line(row))
        else:
            console.print(_line(row), soft_wrap=True)


def _line(row: dict[str, object]) -> Text:
    """Text, never rich markup: a value with brackets is printed as it is."""
    epoch, op, weight, _ = (row[name] for name in OWN)
    line = Text(f"{epoch:>8} ", style="cyan")
    copies = "" if weight in (1, -1) else f" x{abs(int(str(weight)))}"
    line.append(f"{op}{copies}", style=STYLES[str(op)])
    for name, value in row.items():
        if name not in OWN:
            line.append(f"  {name}=", style="dim").append("NULL" if value is None else str(value), style="default")
    return line
