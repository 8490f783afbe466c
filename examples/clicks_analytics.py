"""Analytics on event time, as in a notebook: windows, a watermark, late rows, and results as Spark DataFrames.

Clicks are pushed from Python, out of order. A view counts them per page and minute and emits a window when the
watermark reaches its end; a click within the allowed lateness corrects the window, a later one is stored as a late row.
The changelog is then read as a Spark DataFrame and analysed with Spark's own functions. The program prints the
changelog, the late rows, the corrected windows and the busiest page. It needs no service.

Run: `make examples`, or `.venv/bin/python examples/clicks_analytics.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import laminae as lm

SPARK = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}

DEFINITIONS = """
CREATE SOURCE clicks (at TIMESTAMP, page STRING, visitor STRING, WATERMARK FOR at AS at - INTERVAL '10' SECOND);

CREATE MATERIALIZED VIEW per_minute WITH (allowed_lateness = '1 minute') AS
  SELECT window.start AS minute, page, COUNT(*) AS clicks, COUNT(DISTINCT visitor) AS visitors
  FROM clicks GROUP BY window(at, '1 minute'), page
  EMIT ON WATERMARK;
"""


def send(db: lm.Database, *clicks: tuple[str, str, str]) -> None:
    """One epoch of clicks: (time of day, page, visitor)."""
    rows = [{"at": f"2026-03-01T{time}Z", "page": page, "visitor": visitor} for time, page, visitor in clicks]
    db.insert("clicks", rows)
    db.run()


def main(home: Path) -> None:
    from pyspark.sql.functions import col, desc
    from pyspark.sql.functions import sum as sum_of

    with lm.connect(str(home), config=SPARK) as db:
        db.sql(DEFINITIONS)
        send(db, ("12:00:05", "/", "ada"), ("12:00:40", "/", "bob"), ("12:00:30", "/cart", "ada"))
        # The watermark becomes 12:01:10 - 10 s = 12:01:00, which ends the first minute.
        send(db, ("12:01:10", "/", "ada"))
        # Late, but within the allowed lateness of one minute: the window is corrected.
        send(db, ("12:00:50", "/", "cy"), ("12:02:15", "/cart", "bob"))
        # The watermark passes 12:02:00, so the window of 12:00 is closed for the next epoch.
        send(db, ("12:00:55", "/", "dee"), ("12:03:30", "/", "ada"))

        # Within an epoch, rows of different keys come in any order.
        ordered = sorted(db.changes("per_minute").fetchall(), key=lambda row: (row[0], row[4], row[5], row[2]))
        for _, op, _, _, minute, page, clicks, visitors in ordered:
            print(op, f"{minute:%H:%M}", page, clicks, visitors)
        for view, row in db.sql("SELECT view_name, row FROM laminar_catalog.late_rows").fetchall():
            print("late:", view, row)

        # `.spark()` returns a DataFrame of the same Spark session.
        changes = db.sql("SELECT * FROM CHANGES OF per_minute").spark()
        corrected = changes.where("_op = '-U'").selectExpr("date_format(minute, 'HH:mm') AS minute", "page").distinct()
        print("corrected:", [tuple(row) for row in corrected.collect()])
        clicks = sum_of(col("_weight") * col("clicks")).alias("clicks")
        busiest = changes.groupBy("page").agg(clicks).orderBy(desc("clicks")).first()
        assert busiest is not None
        print("busiest:", busiest.page, busiest.clicks)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory) / "home")
