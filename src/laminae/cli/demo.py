"""The demonstration: one source whose schema changes again and again, in a home that is thrown away."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

import laminae
from laminae.errors import LaminaeError
from laminae.render import grid, history_picture, verdict_lines, verdict_mark
from laminae.schema.projection import projection_between

if TYPE_CHECKING:
    from rich.console import Console

CREATE = """CREATE SOURCE orders (
  id BIGINT NOT NULL, amount INT, ts TIMESTAMP, place STRUCT<city: STRING>,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id)
) WITH (connector = 'push', compatibility = 'BACKWARD')"""

STEPS = (
    ("a column with a default", "ALTER SOURCE orders ADD COLUMN currency STRING DEFAULT 'EUR' AFTER amount"),
    ("a wider type", "ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT"),
    ("a field inside a struct", "ALTER SOURCE orders ADD COLUMN place.zip STRING"),
    ("a rename that keeps the column's id", "ALTER SOURCE orders RENAME COLUMN amount TO amount_cents"),
    ("a narrower type: stored values would not fit", "ALTER SOURCE orders ALTER COLUMN amount_cents TYPE SMALLINT"),
    ("a drop under BACKWARD", "ALTER SOURCE orders DROP COLUMN currency"),
    ("the same drop, forced by a person", "ALTER SOURCE orders DROP COLUMN currency FORCE"),
    ("a drop of the watermark's column", "ALTER SOURCE orders DROP COLUMN ts FORCE"),
    ("the old name again: a new column, nothing resurrects", "ALTER SOURCE orders ADD COLUMN currency STRING"),
)


def run_demo(console: Console) -> None:
    with tempfile.TemporaryDirectory() as home, laminae.connect(home) as db:
        console.print(Panel(Text(CREATE), title="one source, many schemas", border_style="cyan"))
        db.sql(CREATE)
        schemas = [db.schema("orders")]
        for title, statement in STEPS:
            _step(console, db, title, statement)
            if db.version("orders") > len(schemas):
                schemas.append(db.schema("orders"))
        _verdicts(console)
        _projection(console, schemas)
        console.print(Rule("laminar_catalog.schema_history", style="cyan"))
        console.print(history_picture(db.history("orders")))
        console.print(Text(f"\n{db.version('orders')} versions, 0 restarts.", style="bold green"))


def _step(console: Console, db: laminae.Database, title: str, statement: str) -> None:
    console.print(Text(f"\n> {statement}", style="bold"), Text(f"  {title}", style="dim"), sep="\n")
    try:
        (row,) = db.sql(statement).fetchall()
    except LaminaeError as refused:
        console.print(Text(f"  refused [{refused.code}] {refused.message}", style="red"))
        console.print(Text(f"  remedy  {refused.remedy}", style="cyan"))
    else:
        console.print(Text(f"  version {row[2]}: {row[3]}", style="green"))


def _verdicts(console: Console) -> None:
    """The same change under both rule sets and several modes."""
    old = pa.schema([("id", pa.int64()), ("name", pa.string()), ("city", pa.string())])
    new = pa.schema([("id", pa.int64()), ("name", pa.string())])
    console.print(Rule("one drop, judged", style="cyan"))
    rows = []
    for rules in ("seed", "confluent"):
        for mode in ("NONE", "BACKWARD", "FORWARD", "FULL"):
            verdict = laminae.evaluate_evolution(new, [old], mode, rules)
            rows.append((rules, mode, verdict_mark(verdict), verdict.reasons[0].remedy if verdict.reasons else ""))
    console.print(grid(("rules", "mode", "verdict", "remedy"), rows))
    console.print(*verdict_lines(laminae.evaluate_evolution(new, [old], "BACKWARD")), sep="\n")


def _projection(console: Console, schemas: list[pa.Schema]) -> None:
    """A batch of version 1 seen through every later version."""
    batch = pa.RecordBatch.from_pylist([{"id": 1, "amount": 250, "ts": None, "place": {"city": "Ghent"}}], schemas[0])
    console.print(Rule("one record of version 1, read under every version", style="cyan"))
    rows = []
    for version, schema in enumerate(schemas, start=1):
        (row,) = projection_between(schemas[0], schema).project_batch(batch).to_pylist()
        rows.append((f"v{version}", ", ".join(f"{name}={value}" for name, value in row.items())))
    console.print(grid(("read as", "row"), rows))
