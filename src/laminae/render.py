"""Tables and verdicts on a terminal, through rich. What a machine reads never passes here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from laminae.schema.compatibility import Compatible, EvolutionVerdict, RequiresConfirmation
from laminae.schema.describe import describe_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from laminae.catalog.model import HistoryRow


UNFOLDED = 10_000


def print_table(table: pa.Table, limit: int = 50, console: Console | None = None) -> None:
    """The first `limit` rows, and how many there are in all when that is more."""
    console = console or Console()
    rows = list(zip(*(column.to_pylist() for column in table.slice(0, limit).columns), strict=True))
    shown = grid(table.column_names, rows)
    wanted = console.measure(shown, options=console.options.update(max_width=UNFOLDED)).maximum
    if wanted <= console.width:
        console.print(shown)
    elif console.is_terminal:
        _print_records(console, table.column_names, rows)
    else:
        console.print(shown, width=wanted, crop=False, soft_wrap=True)
    if table.num_rows > limit:
        console.print(f"... {table.num_rows} rows in all", style="dim")


def _print_records(console: Console, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """One value a line, for rows that are wider than the terminal."""
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


def verdict_mark(verdict: EvolutionVerdict) -> Text:
    if isinstance(verdict, Compatible):
        return Text("compatible", style="green")
    if isinstance(verdict, RequiresConfirmation):
        return Text("needs confirmation", style="yellow")
    return Text("incompatible", style="red")


def verdict_lines(verdict: EvolutionVerdict) -> list[Text]:
    """Each change, then each reason with its remedy."""
    lines = [Text(f"  {c.column_name}: {describe_change(c)}") for c in verdict.changes]
    for reason in verdict.reasons:
        lines.append(Text(f"  because {reason.path}: {reason.text}", style="red"))
        lines.append(Text(f"  remedy  {reason.remedy}", style="cyan"))
        if reason.other_rules:
            lines.append(Text(f"  note    {reason.other_rules}", style="dim"))
    return lines


def history_picture(rows: Sequence[HistoryRow]) -> Table:
    """Versions as layers, oldest at the bottom of the stream's bed, which is the top of the page."""
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
