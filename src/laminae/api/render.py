"""Renders tables and verdicts for a terminal, with rich. Machine-readable output does not use this module."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from laminae.api.python_values import python_rows
from laminae.catalog.model import TROUBLED_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from laminae.catalog.model import HistoryRow


UNFOLDED = 10_000
STATUS_COUNTS = {
    "epochs": "epochs",
    "rows": "rows",
    "dead_letters": "dead letters",
    "pending_changes": "changes pending",
    "lag": "epochs behind",
}


def print_table(table: pa.Table, limit: int = 50, console: Console | None = None) -> None:
    """Print the first `limit` rows, and the total count if there are more."""
    console = console or Console()
    rows = python_rows(table.slice(0, limit))
    shown = grid(table.column_names, rows)
    wanted = console.measure(shown, options=console.options.update(max_width=UNFOLDED)).maximum
    if wanted <= console.width:
        console.print(shown)
    elif console.is_terminal:
        _print_records(console, table.column_names, rows)
    else:
        # A rich console never prints wider than itself, and a file or a pipe has no width.
        Console(file=console.file, width=wanted).print(shown)
    if table.num_rows > limit:
        console.print(f"... {table.num_rows} rows in all", style="dim")


def table_text(table: pa.Table, limit: int) -> str:
    """What `print_table` prints, without colours."""
    text = StringIO()
    shown = grid(table.column_names, python_rows(table.slice(0, limit)))
    console = Console(file=text, width=UNFOLDED, color_system=None)
    console.print(shown)
    if table.num_rows > limit:
        console.print(f"... the first {limit} rows")
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    return "\n".join(lines)


def _print_records(console: Console, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """One value per line, for rows that are wider than the terminal."""
    for number, row in enumerate(rows, start=1):
        named = ((Text(name, style="bold"), value) for name, value in zip(columns, row, strict=True))
        console.print(Text(f"-- {number}", style="dim"), grid(("", ""), named), sep="\n")


def grid(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(value if isinstance(value, Text) else _cell(value) for value in row))
    return shown


def status_picture(rows: Iterable[Mapping[str, object]]) -> Table:
    """Each object in two or three lines that fit a narrow terminal: its state, its counts, the detail."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    for width in (None, 28, None):
        shown.add_column(overflow="fold", max_width=width)
    for row in rows:
        facts = [f"{row[name]:,} {words}" for name, words in STATUS_COUNTS.items() if row[name] is not None]
        if row["version"] is not None:
            facts.insert(0, f"version {row['version']}")
        if row["state"] is not None:
            facts.insert(0, str(row["state"]))
        style = "red" if row["state"] in TROUBLED_STATES else "yellow" if row["pending_changes"] else ""
        what = Text(", ".join(facts), style=style)
        detail = Text(f"\n{row['detail']}", style="" if style else "dim")
        shown.add_row(Text(str(row["kind"])), Text(str(row["name"]), style="bold"), what + detail)
    return shown


def history_picture(rows: Sequence[HistoryRow]) -> Table:
    """Schema versions as layers, oldest first."""
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("version", "trigger", "change", "column", "type", "default", "applied at"):
        shown.add_column(name, overflow="fold")
    before: int | None = None
    for row in rows:
        first = row.version != before
        before = row.version
        shown.add_row(
            Text(f"v{row.version}", style="bold cyan") if first else "",
            (row.trigger + (" FORCE" if row.forced else "")) if first else "",
            row.change_type,
            f"{row.old_name} -> {row.column_name}" if row.old_name else row.column_name,
            " -> ".join(kind for kind in (row.old_type, row.new_type) if kind),
            row.default or "",
            row.applied_at.strftime("%H:%M:%S.%f")[:-3] if first else "",
        )
    return shown


def _cell(value: object) -> Text:
    return Text("NULL", style="dim") if value is None else Text(str(value))
