"""Options and arguments that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from laminae.errors import UnknownObject

Home = Annotated[str, typer.Option("--home", envvar="LAMINAE_HOME", help="Directory or URI of the home.")]
CatalogUrl = Annotated[
    str | None, typer.Option("--catalog", envvar="LAMINAE_CATALOG", help="postgresql://... instead of SQLite.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a machine.")]


def existing(home: str, catalog: str | None) -> str:
    """Check that the home exists: a read-only command must not create one from a mistyped name."""
    if catalog is None and "://" not in home and not Path(home).expanduser().exists():
        raise UnknownObject(kind="home", name=home, suggestion=" of --home or LAMINAE_HOME")
    return home


def read_statements(file: Path | None) -> str:
    if file is None:
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise typer.BadParameter(f"cannot read {file}: {problem}") from None
