"""Print the table of figures; exit code 1 when a target is missed."""

from __future__ import annotations

from itertools import chain

from rich.console import Console
from rich.table import Table

from tests.bench import ground_floor, streams, zset


def main() -> int:
    console = Console()
    table = Table(title="laminae: figures (median of 31 batches; ratios: median of 15 neighbouring runs)")
    for name in ("figure", "measured", "target", "met", "what was run"):
        table.add_column(name)
    missed = 0
    for figure in chain(ground_floor.figures(), zset.figures(), streams.figures()):
        missed += not figure.is_met
        mark = "[green]yes[/]" if figure.is_met else "[red]NO[/]"
        unit = figure.unit
        table.add_row(figure.name, f"{figure.value:.3g} {unit}", f"<= {figure.limit:g} {unit}", mark, figure.how)
    console.print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
