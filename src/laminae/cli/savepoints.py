"""Maintenance commands for a home: savepoint (create, list, restore, drop) and gc."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

import laminae
from laminae.api.render import grid, print_table
from laminae.cli.options import CatalogUrl, Home, Json, existing
from laminae.cli.output import as_json, rows_of

savepoints = typer.Typer(no_args_is_help=True, help="Pinned epochs that a home can be restored to.")
keeping = typer.Typer()

Name = Annotated[str, typer.Argument(help="Name of the savepoint.")]


@savepoints.command()
def create(name: Name, home: Home = ".laminae", catalog: CatalogUrl = None, json: Json = False) -> None:
    """Pin the last committed epoch; a running pipeline continues."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        epoch = db.savepoint(name)
    typer.echo(as_json({"name": name, "epoch": epoch}) if json else f"{name} is epoch {epoch}")


@savepoints.command("list")
def list_savepoints(home: Home = ".laminae", catalog: CatalogUrl = None, json: Json = False) -> None:
    """Show the savepoints of a home."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        table = db.sql("SELECT * FROM laminar_catalog.savepoints ORDER BY epoch, name").arrow()
    if json:
        typer.echo(as_json(rows_of(table)))
    else:
        print_table(table)


@savepoints.command()
def restore(name: Name, home: Home = ".laminae", catalog: CatalogUrl = None, json: Json = False) -> None:
    """Restore a savepoint; everything after it is processed again by the next run."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        epoch = db.restore(name)
    typer.echo(as_json({"name": name, "epoch": epoch}) if json else f"restored {name}, epoch {epoch}")


@savepoints.command()
def drop(name: Name, home: Home = ".laminae", catalog: CatalogUrl = None, json: Json = False) -> None:
    """Delete a savepoint; gc may then remove what only it needed."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        db.drop_savepoint(name)
    typer.echo(as_json({"name": name}) if json else f"{name} was dropped")


@keeping.command()
def gc(
    home: Home = ".laminae",
    catalog: CatalogUrl = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, without removing it.")
    ] = False,
    json: Json = False,
) -> None:
    """Delete unneeded files: orphans of crashes, and data past its retention."""
    with laminae.connect(existing(home, catalog), catalog=catalog) as db:
        removals = db.gc(dry_run)
    if json:
        rows = [{"kind": r.kind, "source": r.source, "path": r.path, "bytes": r.size} for r in removals]
        typer.echo(as_json(rows))
        return
    if removals:
        Console().print(
            grid(("kind", "source", "path", "bytes"), ((r.kind, r.source, r.path, r.size) for r in removals))
        )
    verb = "would go" if dry_run else "went"
    typer.echo(f"{len(removals)} {verb}, {sum(removal.size for removal in removals):,} bytes")
