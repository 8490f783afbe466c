"""The console sink: print each epoch as a heading with the row count and the first rows.

For inspecting a stream interactively; nothing is stored.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from laminae.engine.definitions.sinks import APPEND
from laminae.engine.options import SINK_OPTIONS, option
from laminae.spark.sinks.debezium import event_lines
from laminae.spark.sinks.json_lines import lines
from laminae.spark.sinks.modes import is_as_stored, mode_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment

MOST_ROWS = 20


def deliver_console(segment: Segment, sink: SinkRecord) -> None:
    """Print rows as a table, or as JSON lines if the sink has a line-based format."""
    # Created per delivery: sys.stdout may be replaced between epochs.
    console = Console()
    for shape in segment.shapes():
        _deliver(console, shape, sink)


def _deliver(console: Console, segment: Segment, sink: SinkRecord) -> None:
    kind = option(sink.options, "format", SINK_OPTIONS)
    if kind == "debezium-json":
        texts = list(event_lines(segment, sink))
        _print_lines(console, _heading(segment, sink, len(texts), "event"), texts)
        return
    batches: Iterator[pa.RecordBatch] = chain.from_iterable(parts_of(segment, sink))
    total = segment.rows
    if not is_as_stored(segment, sink):
        known = list(batches)
        batches, total = iter(known), sum(batch.num_rows for batch in known)
    heading = _heading(segment, sink, total, "row" if mode_of(sink) == APPEND else "change")
    if kind == "json":
        _print_lines(console, heading, (line for batch in batches for line in lines(batch)))
    else:
        _print_table(console, heading, batches)


def _print_table(console: Console, heading: Text, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches, None)
    rows = list(islice(_rows(chain(() if first is None else [first], batches)), MOST_ROWS))
    table = Table(title=heading, title_justify="left", title_style="bold")
    for name in () if first is None else first.schema.names:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*(Text("NULL" if value is None else str(value)) for value in row.values()))
    console.print(table)


def _print_lines(console: Console, heading: Text, texts: Iterable[bytes]) -> None:
    console.print(heading, style="bold")
    for text in islice(texts, MOST_ROWS):
        console.print(Text(text.decode().rstrip("\n")), soft_wrap=True)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, object]]:
    for batch in batches:
        yield from batch.slice(0, MOST_ROWS).to_pylist()


def _heading(segment: Segment, sink: SinkRecord, total: int, word: str) -> Text:
    """The heading as a `Text`, not as rich markup, so that brackets in a name are printed literally."""
    shown = f", the first {MOST_ROWS}" if total > MOST_ROWS else ""
    return Text(f"{sink.name}: epoch {segment.epoch}, {total} {word}{'' if total == 1 else 's'}{shown}")
