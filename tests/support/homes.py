"""Homes that released versions wrote: open one, and add up what its views, changelogs and sinks hold."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import laminae as lm

ARCHIVES = Path(__file__).parents[1] / "fixtures" / "homes"
CHANGE_COLUMNS = ("_epoch", "_op", "_weight", "_timestamp")
Rows = Counter[tuple[Any, ...]]


def unpack(version: str, directory: Path) -> None:
    with tarfile.open(ARCHIVES / f"{version}.tar.gz") as archive:
        archive.extractall(directory, filter="data")


def rows_of(db: lm.Database, relation: str) -> Rows:
    return Counter(tuple(row) for row in db.sql(f"SELECT * FROM {relation}").fetchall())  # noqa: S608


def integral(db: lm.Database, view: str) -> Rows:
    """What the changelog of a view adds up to."""
    return _sum_of_changes(db.changes(view).arrow().to_pylist())


def delivered(directory: Path) -> Rows:
    """What the JSON files of a changelog sink add up to."""
    lines = [line for file in sorted(directory.glob("*.json")) for line in file.read_text().splitlines()]
    return _sum_of_changes([json.loads(line) for line in lines])


def _sum_of_changes(changes: list[dict[str, Any]]) -> Rows:
    total: Rows = Counter()
    for change in changes:
        row = tuple(value for name, value in change.items() if name not in CHANGE_COLUMNS)
        total[row] += change["_weight"]
    return Counter({row: weight for row, weight in total.items() if weight})
