"""Epochs on the terminal: a heading with the count, and the first rows. For a look at a stream, not for keeping."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from laminae.spark.delivery.segment import batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment

MOST_ROWS = 20


def deliver_console(segment: Segment, sink: SinkRecord) -> None:
    rows = list(islice(_rows(segment), MOST_ROWS))
    shown = f", the first {len(rows)}" if len(rows) < segment.rows else ""
    # Texts, never markup: a value with brackets is shown as it is.
    heading = Text(f"{sink.name}: epoch {segment.epoch}, {segment.rows} {_plural(segment.rows)}{shown}")
    table = Table(title=heading, title_justify="left", title_style="bold")
    for name in rows[0] if rows else segment.schema.names:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*(Text("NULL" if value is None else str(value)) for value in row.values()))
    # Made here: standard output may be another one at each epoch.
    Console().print(table)


def _rows(segment: Segment) -> Iterator[dict[str, object]]:
    for file in segment.files():
        for batch in batches(file, segment.schema):
            yield from batch.slice(0, MOST_ROWS).to_pylist()


def _plural(rows: int) -> str:
    return "row" if rows == 1 else "rows"
