"""SET DEFAULT and DROP DEFAULT say what records from now on have; what was read stays what it was."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import laminae as lm

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FORMATS = ("push", "json", "csv", "parquet")
VIEWS = {"grouped": "SELECT c, COUNT(*) AS n FROM {} GROUP BY c", "linear": "SELECT id, c, d FROM {}"}
BEHIND = st.sampled_from(
    ["SET DEFAULT 'y'", "SET DEFAULT 'z'", "DROP DEFAULT", "nothing", "insert c", "insert null", "read", "read"]
)
ACTIONS = st.lists(BEHIND, min_size=5, max_size=8)


class Feed:
    """Writes the same records into a source of each format."""

    def __init__(self, db: lm.Database, inbox: Path) -> None:
        self.db, self.inbox, self.last = db, inbox, 0

    def create(self) -> None:
        for name in FORMATS:
            options = "connector = 'push'"
            if name != "push":
                (self.inbox / name).mkdir(parents=True)
                options = f"connector = 'files', format = '{name}', path = '{self.inbox / name}'"
            self.db.sql(f"CREATE SOURCE {name}_source (id BIGINT) WITH ({options})")

    def alter(self, change: str) -> None:
        for name in FORMATS:
            self.db.sql(f"ALTER SOURCE {name}_source {change}")

    def insert(self, **values: str | None) -> None:
        self.last += 1
        row = {"id": self.last, **values}
        self.db.insert("push_source", [row])
        (self.inbox / "json" / f"{self.last}.json").write_text(json.dumps(row) + "\n")
        texts = ["" if value is None else str(value) for value in row.values()]
        (self.inbox / "csv" / f"{self.last}.csv").write_text(f"{','.join(row)}\n{','.join(texts)}\n")
        types = pa.schema([("id", pa.int64()), *((name, pa.string()) for name in values)])
        pq.write_table(pa.Table.from_pylist([row], types), self.inbox / "parquet" / f"{self.last}.parquet")


def consolidated(db: lm.Database, view: str) -> Counter[tuple[object, ...]]:
    counts: Counter[tuple[object, ...]] = Counter()
    for _, _, weight, _, *values in db.changes(view).fetchall():
        counts[tuple(values)] += int(str(weight))
    return Counter({values: count for values, count in counts.items() if count})


def rows(db: lm.Database, query: str) -> Counter[tuple[object, ...]]:
    return Counter(db.sql(query).fetchall())


@pytest.mark.chaos
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(ACTIONS)
def test_views_are_the_batch_query_however_defaults_change(spark, tmp_path_factory, actions):
    assert_views_are_the_batch_query(spark, tmp_path_factory.mktemp("defaults"), actions)


def test_a_view_kept_while_defaults_change_is_the_view_made_now_and_the_batch_query(spark, tmp_path):
    actions = [
        "read",
        "SET DEFAULT 'y'",
        "insert c",
        "nothing",
        "DROP DEFAULT",
        "read",
        "SET DEFAULT 'z'",
        "insert null",
    ]
    assert_views_are_the_batch_query(spark, tmp_path, actions)


def assert_views_are_the_batch_query(spark: SparkSession, place: Path, actions: list[str]) -> None:
    with lm.connect(str(place / "home"), spark=spark) as db:
        feed = Feed(db, place / "inbox")
        feed.create()
        feed.insert()
        db.run()
        feed.alter("ADD COLUMN c STRING DEFAULT 'x'")
        feed.alter("ADD COLUMN d STRING")
        for name in FORMATS:
            for view, query in VIEWS.items():
                db.sql(f"CREATE MATERIALIZED VIEW {view}_{name} AS {query.format(f'{name}_source')}")
        feed.insert()
        for action in actions:
            if action.startswith(("SET", "DROP")):
                db.run()
                feed.alter(f"ALTER COLUMN c {action}")
                feed.alter(f"ALTER COLUMN d {action}")
            elif action == "read":
                feed.insert()
                db.run()
            else:
                feed.insert(**({"insert c": {"c": "q"}, "insert null": {"c": None}}.get(action, {})))
        db.run()
        for name in FORMATS:
            for view, query in VIEWS.items():
                db.sql(f"CREATE MATERIALIZED VIEW {view}_{name}_now AS {query.format(f'{name}_source')}")
        db.run()
        for name in FORMATS:
            for view, query in VIEWS.items():
                batch = rows(db, query.format(f"{name}_source"))
                for kept in (f"{view}_{name}", f"{view}_{name}_now"):
                    assert rows(db, "SELECT * FROM " + kept) == batch, (kept, actions)  # noqa: S608  # a name of this file
                    assert consolidated(db, kept) == batch, (kept, actions)


def test_set_default_leaves_the_rows_before_it_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql("CREATE SOURCE s (id INT) WITH (connector = 'push')")
        db.insert("s", [{"id": 1}, {"id": 2}])
        db.run()
        db.sql("ALTER SOURCE s ADD COLUMN c STRING DEFAULT 'x'")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT c, COUNT(*) AS n FROM s GROUP BY c")
        db.insert("s", [{"id": 3}])
        db.run()
        db.sql("ALTER SOURCE s ALTER COLUMN c SET DEFAULT 'y'")
        db.insert("s", [{"id": 4}])
        db.run()
        db.sql("CREATE MATERIALIZED VIEW now AS SELECT c, COUNT(*) AS n FROM s GROUP BY c")
        db.run()
        assert rows(db, "SELECT * FROM v") == rows(db, "SELECT * FROM now") == Counter({("x", 3): 1, ("y", 1): 1})
        described = {name: detail for name, *_, detail in db.sql("DESCRIBE SOURCE s").fetchall()}
        assert str(described["c"]).endswith('records before it have "x"')
        db.sql("ALTER SOURCE s ALTER COLUMN c DROP DEFAULT")
        db.insert("s", [{"id": 5}])
        db.run()
        assert rows(db, "SELECT * FROM v") == Counter({("x", 3): 1, ("y", 1): 1, (None, 1): 1})
        assert rows(db, "SELECT id, c FROM s") == Counter([(1, "x"), (2, "x"), (3, "x"), (4, "y"), (5, None)])
