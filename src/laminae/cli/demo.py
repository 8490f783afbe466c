"""The demo: a stream that runs while its schema changes, in a temporary home."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

import laminae
from laminae.api.render import grid, history_picture
from laminae.cli.doctor import java
from laminae.errors import LaminaeError, NotAvailable

if TYPE_CHECKING:
    from rich.console import Console

    from laminae.spark.driver.pipeline import Pipeline

CREATE = """CREATE SOURCE orders (
  id BIGINT NOT NULL, amount INT, ts TIMESTAMP, place STRUCT<city: STRING>,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id)
) WITH (connector = 'push', format = 'json', compatibility = 'BACKWARD')"""

# The title, the statement to run, and the rows that a producer sends afterwards.
STEPS: tuple[tuple[str, str | None, list[dict[str, object]]], ...] = (
    ("the stream runs", None, [{"id": 1, "amount": 250, "place": {"city": "Ghent"}}, {"id": 2, "amount": 900}]),
    (
        "a new column with a default, also for old records",
        "ALTER SOURCE orders ADD COLUMN currency STRING DEFAULT 'EUR'",
        [{"id": 3, "amount": 75, "currency": "USD"}],
    ),
    (
        "a wider type, for a value that did not fit before",
        "ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT",
        [{"id": 4, "amount": 3_000_000_000}],
    ),
    (
        "a rename: the column keeps its id, and producers may still use the old name",
        "ALTER SOURCE orders RENAME COLUMN amount TO cents",
        [{"id": 5, "cents": 10}, {"id": 6, "amount": 20}],
    ),
    (
        "a change that would lose stored values is refused; the stream continues",
        "ALTER SOURCE orders ALTER COLUMN cents TYPE SMALLINT",
        [{"id": 7, "cents": 30}],
    ),
    (
        "a record without the required id becomes a dead letter; the stream continues",
        None,
        [{"cents": 40}, {"id": 8, "cents": 50}],
    ),
)
VIEWS = (
    """CREATE SOURCE sales (id BIGINT NOT NULL, shop STRING, amount INT, gone BOOLEAN, PRIMARY KEY (id))
WITH (connector = 'push', changelog = 'upsert', deleted_by = 'gone')""",
    "CREATE MATERIALIZED VIEW shops AS SELECT shop, COUNT(*) AS sales, SUM(amount) AS amount FROM sales GROUP BY shop",
    "CREATE MATERIALIZED VIEW sizes AS SELECT sales, COUNT(*) AS shops FROM shops GROUP BY sales",
)
# The title, and the keyed records that a producer sends.
CORRECTIONS: tuple[tuple[str, list[dict[str, object]]], ...] = (
    (
        "three sales in two shops",
        [
            {"id": 1, "shop": "Ghent", "amount": 10},
            {"id": 2, "shop": "Ghent", "amount": 20},
            {"id": 3, "shop": "Bruges", "amount": 5},
        ],
    ),
    (
        "sale 2 was made in Bruges: both shops are corrected, and the view over them",
        [{"id": 2, "shop": "Bruges", "amount": 20}],
    ),
    ("sale 1 is cancelled: Ghent has no sales left", [{"id": 1, "gone": True}]),
)
CONFIG = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}


def run_demo(console: Console) -> None:
    finding = java()
    if finding.advice:
        raise NotAvailable(feature="The demonstration", problem=f"Java: {finding.state}", advice=finding.advice)
    with tempfile.TemporaryDirectory() as folder, laminae.connect(f"{folder}/home", config=CONFIG) as db:
        out = Path(folder, "out")
        sink = f"CREATE SINK warehouse FROM orders WITH (connector = 'files', format = 'parquet', path = '{out}')"
        console.print(Panel(Text(f"{CREATE};\n\nCREATE SINK warehouse FROM orders ..."), border_style="cyan"))
        db.sql(f"{CREATE}; {sink}")
        console.print(Text("starting Spark ...", style="dim"))
        pipeline = db.start("200 milliseconds")
        try:
            _run(console, db, pipeline, out)
            _correct(console, db, pipeline)
        finally:
            pipeline.stop()


def _run(console: Console, db: laminae.Database, pipeline: Pipeline, out: Path) -> None:
    sent, run_ids = 0, set()
    for title, statement, rows in STEPS:
        console.print(Text(f"\n{title}", style="bold"))
        if statement is not None:
            _alter(console, db, statement)
        sent += db.insert("orders", rows)
        pipeline.process_all_available()
        (status,) = pipeline.status()
        run_ids.add(status.run_id)
        console.print(Text(f"  sent {rows}", style="dim"))
        console.print(f"  version {status.version}, {status.rows} rows, {status.dead_letters} dead letters")
    console.print(Rule("SELECT * FROM orders: every record under the present schema", style="cyan"))
    answer = db.sql("SELECT * FROM orders ORDER BY id")
    console.print(grid(answer.columns, answer.fetchall()))
    console.print(Rule("laminar_catalog.dead_letters", style="cyan"))
    dead = db.sql("SELECT CAST(value AS STRING) AS record, reason FROM laminar_catalog.dead_letters")
    console.print(grid(dead.columns, dead.fetchall()))
    console.print(Rule("laminar_catalog.schema_history", style="cyan"))
    console.print(history_picture(db.history("orders")))
    arrived = sum(pq.read_metadata(file).num_rows for file in out.glob("*.parquet"))
    counted = f"rows in: {sent}, rows out: {arrived}, dead letters: {len(dead)}, restarts: {len(run_ids) - 1}"
    console.print(Text(f"\n{counted} (the run id of Spark's own query never changed)", style="bold green"))


def _correct(console: Console, db: laminae.Database, pipeline: Pipeline) -> None:
    """Corrections that propagate through two stacked views while the pipeline runs."""
    console.print(Rule("views that retract", style="cyan"))
    for statement in VIEWS:
        console.print(Text(f"  > {statement}"))
        db.sql(statement)
    seen = 0
    for title, records in CORRECTIONS:
        console.print(Text(f"\n{title}", style="bold"))
        db.insert("sales", records)
        pipeline.process_all_available()
        since, seen = seen, max(db.last_change("shops"), db.last_change("sizes"))
        for view in ("shops", "sizes"):
            for _, op, _, _, *row in db.changes(view, since).fetchall():
                console.print(
                    Text(f"  {view}  {op}  {'  '.join(map(str, row))}", style="dim" if str(op).startswith("-") else "")
                )
    for view in ("shops", "sizes"):
        answer = db.sql(f"SELECT * FROM {view}")  # noqa: S608  # the name is a constant
        console.print(Text(f"\nSELECT * FROM {view}"))
        console.print(grid(answer.columns, answer.fetchall()))


def _alter(console: Console, db: laminae.Database, statement: str) -> None:
    console.print(Text(f"  > {statement}"))
    try:
        db.sql(statement)
    except LaminaeError as refused:
        console.print(Text(f"  refused [{refused.code}] {refused.message}", style="red"))
        console.print(Text(f"  remedy  {refused.remedy}", style="cyan"))
