"""What decides the meaning of expressions is the home's, not that of the session that happens to run it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.spark.catalyst.session_settings import DECIDE_MEANING, FIXED, cloned, meaning_of, put_in_force

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

NEW_YORK = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
}
TOKYO = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.legacy.setopsPrecedence.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.retainGroupColumns": "false",
}
VIEWS = {
    "days": "SELECT date(ts) AS d, COUNT(*) AS n, SUM(try_divide(a, b)) AS q FROM t GROUP BY date(ts)",
    "hours": "SELECT id, date_format(ts, 'HH:mm') AS h, CAST(s AS INT) AS i, size(NULL) AS z FROM t",
    "texts": (
        r"SELECT CAST(s AS INT) AS i, COUNT(*) AS n FROM t WHERE s RLIKE '^\\d' OR S IS NULL GROUP BY CAST(s AS INT)"
    ),
    "instants": "SELECT ts, COUNT(*) AS n, MAX(ts) AS m, COUNT(DISTINCT ts) AS k FROM t GROUP BY ts",
    "latest": "SELECT MAX(CAST(ts AS STRING)) AS m, MIN(to_date(s, 'd')) AS f, SUM(a * b) AS p FROM t",
}
START = datetime(2024, 3, 10, tzinfo=UTC)


def session_with(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    session = cloned(spark)
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def row(number: int, text: str | None) -> dict[str, object]:
    at = START + timedelta(hours=5 * number)
    return {"id": number, "ts": at, "s": text, "a": f"{number}.5", "b": "3.25"}


def consolidated(db: lm.Database, view: str) -> Counter[tuple[object, ...]]:
    counts: Counter[tuple[object, ...]] = Counter()
    for _, _, weight, _, *values in db.changes(view).fetchall():
        counts[tuple(values)] += int(str(weight))
    return Counter({values: count for values, count in counts.items() if count})


def test_views_run_by_a_session_with_other_settings_equal_the_batch_under_the_stored_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    first = session_with(spark, NEW_YORK)
    with lm.connect(home, spark=first) as db:
        db.sql(
            "CREATE SOURCE t (id INT, ts TIMESTAMP, s STRING, a DECIMAL(30, 10), b DECIMAL(30, 10), "
            "gone BOOLEAN, PRIMARY KEY (id)) "
            "WITH (connector = 'push', changelog = 'upsert', deleted_by = 'gone')"
        )
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.insert("t", [row(n, ("7", "x", None, "2147483648")[n % 4]) for n in range(8)])
        db.run()
    other = session_with(spark, TOKYO)
    before = meaning_of(other)
    with lm.connect(home, spark=other) as db:
        db.insert("t", [row(n, "5") for n in (1, 9)] + [{"id": n, "gone": True} for n in (0, 3)])
        db.run()
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name}_now AS {query}")
        db.run()
        table = db.sql("SELECT * FROM t").arrow()
        batch = session_with(spark, NEW_YORK)
        batch.createDataFrame(table).createOrReplaceTempView("t")
        for name, query in VIEWS.items():
            expected = Counter(tuple(each.values()) for each in batch.sql(query).toArrow().to_pylist())
            for view in (name, f"{name}_now"):
                rows = db.sql(f"SELECT * FROM {view}").fetchall()  # noqa: S608  # a name of this file
                assert Counter(rows) == expected, view
                assert consolidated(db, view) == expected, view
        shown = dict(db.sql("SELECT name, value FROM laminar_catalog.settings").fetchall())
    assert shown["spark.sql.session.timeZone"] == "America/New_York"
    assert {**before, **TOKYO} == {**meaning_of(other), **TOKYO}
    assert other.conf.get("spark.sql.retainGroupColumns") == "false"


def test_a_home_adopts_the_settings_of_the_session_that_runs_it_first_and_a_select_stores_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    with lm.connect(home, spark=session_with(spark, TOKYO)) as db:
        db.sql("CREATE SOURCE t (id INT, ts TIMESTAMP) WITH (connector = 'push')")
        db.insert("t", [{"id": 1, "ts": START}])
        assert db.sql("SELECT current_timezone() FROM t").fetchall() == []
        with lm.connect(home, spark=session_with(spark, NEW_YORK)) as driver:
            driver.run()
        assert db.sql("SELECT current_timezone(), date(ts) FROM t").fetchall() == [
            ("America/New_York", (START - timedelta(hours=5)).date())
        ]


@pytest.mark.parametrize("name", [*DECIDE_MEANING, *FIXED])
def test_every_setting_that_is_kept_is_one_that_spark_knows_and_can_change(spark: SparkSession, name: str) -> None:
    session = cloned(spark)
    put_in_force(session, {name: str(session.conf.get(name))})
    assert session.conf.isModifiable(name)
