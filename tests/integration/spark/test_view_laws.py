"""The laws of views, through Spark: fifty random histories at a time, side by side in one stream as groups of one view.

What is inserted, deleted again and repeated is drawn by hypothesis, and so is how it is cut into epochs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import laminae as lm

HISTORIES, EPOCHS = 50, 4
VIEWS = {
    "totals": """SELECT example, k, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, MIN(v) AS lo, MAX(v) AS hi,
                        COUNT(DISTINCT v) AS d, AVG(v) AS m, SUM(x) AS x FROM events GROUP BY example, k""",
    "sizes": "SELECT example, n, COUNT(*) AS groups, SUM(s) AS s FROM totals WHERE n < 5 GROUP BY example, n",
    "pairs": "SELECT DISTINCT example, k, v FROM events UNION SELECT example, 'all', v FROM events",
    "plain": "SELECT example, upper(k) AS k, v * 2 AS v FROM events WHERE v IS NULL OR v <> 2",
}
KEYS = {"totals": 2, "sizes": 2, "pairs": 3, "plain": None}

row = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from([0, 1, 2, 3, -(2**31), 2**31 - 1, None]),
    st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 5e-324, None]),
)


@st.composite
def histories(draw):
    """(epoch, row, weight) in the order of epochs: every deletion stands behind an insertion of its row."""
    found: list[tuple[int, tuple, int]] = []
    alive: list[tuple[int, tuple]] = []
    for inserted in draw(st.lists(row, min_size=1, max_size=6)):
        epoch = draw(st.integers(0, EPOCHS - 1))
        found.append((epoch, inserted, 1))
        alive.append((epoch, inserted))
    for epoch, inserted in alive:
        if draw(st.booleans()):
            found.append((draw(st.integers(epoch, EPOCHS - 1)), inserted, -1))
    return sorted(found, key=lambda event: (event[0], -event[2]))


@settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.large_base_example, HealthCheck.too_slow],
)
@given(cases=st.lists(histories(), min_size=HISTORIES, max_size=HISTORIES))
def test_changelog_rows_and_batch_query_agree_for_random_histories(spark, tmp_path_factory, cases):
    with lm.connect(str(tmp_path_factory.mktemp("laws") / "home"), spark=spark) as db:
        db.sql(
            "CREATE SOURCE events (example INT, k STRING, v INT, x DOUBLE, w INT) "
            "WITH (connector = 'push', changelog = 'retract', weight_field = 'w')"
        )
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        pipeline = db.start("0 seconds")
        try:
            for epoch in range(EPOCHS):
                db.insert("events", _events(cases, epoch))
                pipeline.process_all_available()
        finally:
            pipeline.stop()
        left = _left(cases)
        expected = _batch(spark, left)
        for name in VIEWS:
            shown = Counter(db.sql("SELECT * FROM " + name).fetchall())  # noqa: S608
            assert shown == expected[name], name
            assert _integrated(db.changes(name).fetchall(), KEYS[name]) == shown, name


def _events(cases, epoch: int) -> list[dict[str, object]]:
    return [
        {"example": number, "k": k, "v": v, "x": x, "w": weight}
        for number, events in enumerate(cases)
        for at, (k, v, x), weight in events
        if at == epoch
    ]


def _left(cases) -> list[tuple]:
    left: Counter[tuple] = Counter()
    for number, events in enumerate(cases):
        for _, values, weight in events:
            left[number, *values] += weight
    return list(left.elements())


def _batch(spark, left: list[tuple]) -> dict[str, Counter]:
    """The queries as Spark answers them over what is left; sums of doubles by `fsum`, which is exact."""
    spark.createDataFrame(left, "example INT, k STRING, v INT, x DOUBLE").createOrReplaceTempView("events")
    exact: defaultdict[tuple, list[float]] = defaultdict(list)
    for example, k, _, x in left:
        if x is not None:
            exact[example, k].append(x)
    found: dict[str, Counter] = {}
    for name, query in VIEWS.items():
        frame = spark.sql(query)
        frame.createOrReplaceTempView(name)
        found[name] = Counter(map(tuple, frame.collect()))
    sums = {key: math.fsum(values) for key, values in exact.items()}
    found["totals"] = Counter((*values[:-1], sums.get(values[:2])) for values in found["totals"].elements())
    for name in (*VIEWS, "events"):
        spark.catalog.dropTempView(name)
    return found


def _integrated(changes: list[tuple], key: int | None) -> Counter:
    """The sum of a changelog; no multiplicity is ever negative, and an epoch says at most one thing of a key."""
    rows: Counter[tuple] = Counter()
    said: Counter[tuple] = Counter()
    before: tuple | None = None
    for epoch, op, weight, _, *values in changes:
        rows[tuple(values)] += weight
        assert rows[tuple(values)] >= 0
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
