"""Print the table of figures; exit code 1 when a target is missed."""

from __future__ import annotations

import os
import sys
from itertools import chain
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tests.bench import ground_floor, kafka, state, streams, trace, views, zset

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS = {part.__name__.rpartition(".")[2]: part for part in (ground_floor, zset, state, trace, streams, views, kafka)}


def main(names: Sequence[str]) -> int:
    """All parts, or those that are named."""
    if wanted := kafka.connector_jars() if "kafka" in (names or PARTS) else ():
        # The JVM is started once, for all parts, with the class path of that moment.
        os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--jars {','.join(wanted)} pyspark-shell")
    console = Console()
    table = Table(title="laminae: figures (median of 31 batches; ratios: median of 15 neighbouring runs)")
    for name in ("figure", "measured", "target", "met", "what was run"):
        table.add_column(name)
    missed = 0
    for figure in chain.from_iterable(PARTS[name].figures() for name in names or PARTS):
        # As they come too: the whole table takes most of an hour.
        print(f"{figure.name}: {figure.value:.3g} (<= {figure.limit:g}) {figure.unit}; {figure.how}", flush=True)
        missed += not figure.is_met
        mark = "[green]yes[/]" if figure.is_met else "[red]NO[/]"
        unit = figure.unit
        table.add_row(figure.name, f"{figure.value:.3g} {unit}", f"<= {figure.limit:g} {unit}", mark, figure.how)
    console.print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
