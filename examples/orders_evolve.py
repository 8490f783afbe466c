"""Orders whose schema changes while the stream runs, and totals that are corrected by retractions.

A push source is keyed by order id (`changelog = 'upsert'`). Two views are stacked on it: totals per customer, and how
many customers have how many orders. While the pipeline runs, a column is added, one is widened and one is renamed;
one order moves to another customer and one is cancelled. The program prints the schema versions, the changelog of the
totals after the correction (-U, +U, -D) and the rows that are left. It needs no service.

Run: `make examples`, or `.venv/bin/python examples/orders_evolve.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import laminae as lm

SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}

DEFINITIONS = """
CREATE SOURCE orders (id BIGINT NOT NULL, customer STRING, amount INT, cancelled BOOLEAN, PRIMARY KEY (id))
  WITH (changelog = 'upsert', deleted_by = 'cancelled');

CREATE MATERIALIZED VIEW totals AS
  SELECT customer, COUNT(*) AS orders, SUM(amount) AS cents FROM orders GROUP BY customer;

CREATE MATERIALIZED VIEW sizes AS
  SELECT orders, COUNT(*) AS customers FROM totals GROUP BY orders;
"""


def evolve(db: lm.Database) -> None:
    """Three schema changes. Each applies from the next epoch on; the stream is not restarted."""
    db.sql("ALTER SOURCE orders ADD COLUMN currency STRING DEFAULT 'EUR'")
    db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
    db.sql("ALTER SOURCE orders RENAME COLUMN amount TO cents")


def main(home: Path) -> None:
    with lm.connect(str(home), config=SPARK) as db:
        db.sql(DEFINITIONS)
        pipeline = db.start("100 milliseconds")
        db.insert("orders", [{"id": 1, "customer": "ada", "amount": 1000}, {"id": 2, "customer": "ada", "amount": 250}])
        db.insert("orders", [{"id": 3, "customer": "bob", "amount": 700}])
        pipeline.process_all_available()

        evolve(db)
        # A value that INT cannot hold, and a producer that still uses the old name of the column.
        db.insert("orders", [{"id": 4, "customer": "cy", "cents": 5_000_000_000, "currency": "NOK"}])
        db.insert("orders", [{"id": 5, "customer": "bob", "amount": 50}])
        pipeline.process_all_available()
        print("versions:", [(row.version, row.change_type) for row in db.history("orders") if row.version > 1])
        print("orders:", sorted(db.sql("SELECT id, cents, currency FROM orders").fetchall()))

        # Late corrections: order 2 belongs to bob, order 1 is cancelled.
        epoch = db.last_change("totals")
        db.insert("orders", [{"id": 2, "customer": "bob", "cents": 250}, {"id": 1, "cancelled": True}])
        pipeline.process_all_available()
        pipeline.stop()
        for _, op, _, _, *row in sorted(db.changes("totals", epoch).fetchall(), key=lambda row: (row[4], row[2])):
            print(op, *row)
        print("totals:", sorted(db.sql("SELECT * FROM totals").fetchall()))
        print("sizes:", sorted(db.sql("SELECT * FROM sizes").fetchall()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory) / "home")
