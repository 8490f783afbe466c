"""A table captured by Debezium, read from JSON files and written as Parquet, with dead letters that are replayed.

The directory `in` receives Debezium events of a table `customers`, as the JSON converter of Kafka Connect writes them
without a schema. A `files` source keeps the table by its key; a view counts customers per country; a Parquet sink
receives the net change of each key. One event has a value that does not fit its column: it becomes a dead letter while
the stream continues. After the column is changed the dead letter is replayed, exactly once. The program prints the
table, the dead letter, the result of the replay and the state that the Parquet files add up to. It needs no service.

Run: `make examples`, or `.venv/bin/python examples/cdc_to_parquet.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import laminae as lm

SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}

DEFINITIONS = """
CREATE SOURCE customers (id INT NOT NULL, name STRING, country STRING, points INT, PRIMARY KEY (id))
  WITH (connector = 'files', path = '{inbox}', format = 'debezium-json');

CREATE MATERIALIZED VIEW countries AS
  SELECT country, COUNT(*) AS customers, SUM(points) AS points FROM customers GROUP BY country;

CREATE SINK report FROM countries
  WITH (connector = 'files', format = 'parquet', mode = 'upsert', path = '{outbox}');
"""

Row = dict[str, Any] | None


def event(op: str, lsn: int, after: Row = None, before: Row = None) -> str:
    """One line of Debezium's PostgreSQL connector; `lsn` orders the events of a key."""
    source = {"connector": "postgresql", "db": "shop", "table": "customers", "lsn": lsn}
    return json.dumps({"before": before, "after": after, "source": source, "op": op, "ts_ms": 1700000000000 + lsn})


def write_file(inbox: Path, name: str, *lines: str) -> None:
    """Write under a hidden name and rename: a source never reads a partial file."""
    hidden = inbox / f".{name}"
    hidden.write_text("".join(line + "\n" for line in lines))
    hidden.rename(inbox / name)


def delivered(outbox: Path) -> list[tuple[Any, ...]]:
    """The last row of each key, as a reader of the Parquet files would compute it."""
    rows: dict[str, dict[str, Any]] = {}
    for file in sorted(outbox.glob("*.parquet")):
        for row in pq.read_table(file).to_pylist():
            rows[row["country"]] = row
    return sorted((key, row["customers"], row["points"]) for key, row in rows.items() if row["_op"] != "-D")


def main(directory: Path) -> None:
    inbox, outbox = directory / "in", directory / "out"
    inbox.mkdir()
    with lm.connect(str(directory / "home"), config=SPARK) as db:
        db.sql(DEFINITIONS.format(inbox=inbox, outbox=outbox))
        ada = {"id": 1, "name": "Ada", "country": "IT", "points": 10}
        bo = {"id": 2, "name": "Bo", "country": "NO", "points": 5}
        write_file(inbox, "001-snapshot.json", event("r", 10, ada), event("r", 11, bo))
        db.run()

        # Ada moves, Bo is deleted, and Cy has more points than an INT can hold.
        cy = {"id": 3, "name": "Cy", "country": "NO", "points": 3_000_000_000}
        moved = event("u", 12, {**ada, "country": "NO"}, before=ada)
        write_file(inbox, "002-changes.json", moved, event("d", 13, before=bo), event("c", 14, cy))
        db.run()
        print("customers:", sorted(db.sql("SELECT * FROM customers").fetchall()))
        for (reason,) in db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall():
            print("dead letter:", reason)

        db.sql("ALTER SOURCE customers ALTER COLUMN points TYPE BIGINT")
        replayed = db.replay_dead_letters("customers")
        print("replayed:", replayed.rows, "refused:", replayed.refused)
        db.run()
        print("countries:", sorted(db.sql("SELECT * FROM countries").fetchall()))
        print("parquet:", delivered(outbox))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory))
