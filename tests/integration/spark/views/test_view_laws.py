"""The laws of views, through Spark: fifty random histories at a time, side by side in one stream as groups of one view.

What is inserted, deleted again, repeated and late is drawn by hypothesis, and so is how it is cut into epochs. Epochs
are begun again after a crash between their job and their commit.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import laminae as lm
from tests.support.crashing import EpochCrashError, crash_at

HISTORIES, EPOCHS = 50, 4
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
# One is computed and not committed, one is committed and Spark does not hear of it.
CRASHES = {1: "files synced", 2: "epoch committed"}
VIEWS = {
    "totals": """SELECT example, k, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, MIN(v) AS lo, MAX(v) AS hi,
                        COUNT(DISTINCT v) AS d, AVG(v) AS m, SUM(x) AS x FROM events GROUP BY example, k""",
    "sizes": "SELECT example, n, COUNT(*) AS groups, SUM(s) AS s FROM totals WHERE n < 5 GROUP BY example, n",
    "pairs": "SELECT DISTINCT example, k, v FROM events UNION SELECT example, 'all', v FROM events",
    "timed": """SELECT example, window.start AS at, COUNT(*) AS n, SUM(v) AS s FROM events
                GROUP BY example, window(at, '10 seconds')""",
    "plain": "SELECT example, upper(k) AS k, CAST(v AS BIGINT) * 2 AS v FROM events WHERE v IS NULL OR v <> 2",
    "risky": "SELECT example, k, v * 2 AS v FROM events",
}
KEYS = {"totals": 2, "sizes": 2, "pairs": 3, "timed": 2, "plain": None, "risky": None}
# What a view is that cannot compute some rows: the query over the others.
BATCH = {"risky": VIEWS["risky"] + " WHERE v IS NULL OR try_multiply(v, 2) IS NOT NULL"}

row = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from([0, 1, 2, 3, -(2**31), 2**31 - 1, None]),
    st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 5e-324, None]),
)


@st.composite
def histories(draw):
    """(epoch, row, weight) in the order of epochs: every deletion stands behind an insertion of its row.

    The last value of a row is its time in seconds, most often near that of its epoch.
    """
    found: list[tuple[int, tuple, int]] = []
    alive: list[tuple[int, tuple]] = []
    for inserted in draw(st.lists(row, min_size=1, max_size=6)):
        epoch = draw(st.integers(0, EPOCHS - 1))
        timed = (*inserted, max(0, 10 * epoch + draw(st.integers(-25, 9))))
        copies = draw(st.sampled_from([1, 1, 2]))
        found += [(epoch, timed, 1)] * copies
        alive += [(epoch, timed)] * copies
    for epoch, inserted in alive:
        if draw(st.booleans()):
            found.append((draw(st.integers(epoch, EPOCHS - 1)), inserted, -1))
    return sorted(found, key=lambda event: (event[0], -event[2]))


def drawn() -> list[list[tuple[int, tuple, int]]]:
    """Fifty examples of a history. Of fifty histories as one example it would give the simplest, and no other."""
    found: list[list[tuple[int, tuple, int]]] = []

    @settings(max_examples=HISTORIES, database=None, derandomize=True, phases=[Phase.generate])
    @given(history=histories())
    def collect(history) -> None:
        found.append(history)

    collect()
    return found


def test_changelog_rows_and_batch_query_agree_for_random_histories(spark, tmp_path):
    cases = drawn()
    assert len(cases) == HISTORIES
    assert {weight for events in cases for _, _, weight in events} == {1, -1}
    assert any(len(events) > len(set(events)) for events in cases)
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql(
            "CREATE SOURCE events (example INT, k STRING, v INT, x DOUBLE, at TIMESTAMP, w INT, "
            "WATERMARK FOR at AS at - INTERVAL '5' SECOND) "
            "WITH (connector = 'push', changelog = 'retract', weight_field = 'w')"
        )
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for epoch in range(EPOCHS):
            db.insert("events", _events(cases, epoch))
            if epoch in CRASHES:
                with crash_at(CRASHES[epoch], EpochCrashError):
                    db.run()
            db.run()
        late = _late(db)
        assert late
        expected = _batch(spark, _left(cases), _left(cases, late))
        for name in VIEWS:
            shown = Counter(map(_comparable, db.sql("SELECT * FROM " + name).fetchall()))  # noqa: S608
            assert shown == expected[name], name
            assert _integrated(db.changes(name).fetchall(), KEYS[name]) == shown, name
        refused = db.sql("SELECT view_name, weight FROM laminar_catalog.dead_letters").fetchall()
        weights = [weight for events in cases for _, (_, v, *_), weight in events if v is not None and abs(v) > 3]
        assert Counter(refused) == Counter(("risky", weight) for weight in weights)


def _events(cases, epoch: int) -> list[dict[str, object]]:
    return [
        {"example": number, "k": k, "v": v, "x": x, "at": _text(at), "w": weight}
        for number, events in enumerate(cases)
        for when, (k, v, x, at), weight in events
        if when == epoch
    ]


def _text(at: int) -> str:
    return f"{BEGIN + timedelta(seconds=at):%Y-%m-%dT%H:%M:%SZ}"


def _late(db) -> Counter:
    """The rows that the view over windows left out, with their weights."""
    found: Counter[tuple] = Counter()
    for view, text, weight in db.sql("SELECT view_name, row, weight FROM laminar_catalog.late_rows").fetchall():
        assert view == "timed"
        row = json.loads(text)
        seconds = (datetime.fromisoformat(row["at"]) - BEGIN).total_seconds()
        found[row["example"], row.get("k"), row.get("v"), row.get("x"), int(seconds)] += weight
    return found


def _left(cases, late: Counter | None = None) -> list[tuple]:
    left: Counter[tuple] = Counter()
    for number, events in enumerate(cases):
        for _, values, weight in events:
            left[number, *values] += weight
    left.subtract(late or {})
    assert min(left.values()) >= 0
    return [(*values, BEGIN + timedelta(seconds=at)) for *values, at in left.elements()]


def _batch(spark, left: list[tuple], in_time: list[tuple]) -> dict[str, Counter]:
    """The queries as Spark answers them over what is left; sums of doubles by `fsum`, which is exact.

    A view over windows has what was left of the rows that were in time.
    """
    schema = "example INT, k STRING, v INT, x DOUBLE, at TIMESTAMP"
    frames = {name: spark.createDataFrame(rows, schema) for name, rows in (("", left), ("timed", in_time))}
    exact: defaultdict[tuple, list[float]] = defaultdict(list)
    for example, k, _, x, _ in left:
        if x is not None:
            exact[example, k].append(x)
    found: dict[str, Counter] = {}
    for name, query in VIEWS.items():
        frames.get(name, frames[""]).createOrReplaceTempView("events")
        frame = spark.sql(BATCH.get(name, query))
        frame.createOrReplaceTempView(name)
        found[name] = Counter(_comparable(tuple(row.values())) for row in frame.toArrow().to_pylist())
    sums = {key: math.fsum(values) for key, values in exact.items()}
    found["totals"] = Counter((*values[:-1], sums.get(values[:2])) for values in found["totals"].elements())
    for name in (*VIEWS, "events"):
        spark.catalog.dropTempView(name)
    return found


def _comparable(row: tuple) -> tuple:
    """Times as they are in UTC, however they were fetched."""
    return tuple(
        value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value
        for value in row
    )


def _integrated(changes: list[tuple], key: int | None) -> Counter:
    """The sum of a changelog; no multiplicity is ever negative, and an epoch says at most one thing of a key."""
    rows: Counter[tuple] = Counter()
    said: Counter[tuple] = Counter()
    before: tuple | None = None
    for epoch, op, weight, _, *found in changes:
        values = _comparable(tuple(found))
        rows[values] += weight
        assert rows[values] >= 0
        assert (weight > 0) == (op in ("+I", "+U"))
        if key is not None:
            said[epoch, *values[:key], op] += 1
            assert said[epoch, *values[:key], op] == 1
            if op == "+U":
                assert before == (epoch, "-U", *values[:key])
            before = (epoch, op, *values[:key])
    return +rows


@pytest.fixture(autouse=True)
def _no_leftovers(spark):
    yield
    assert not [table for table in spark.catalog.listTables() if table.isTemporary]
