"""Names that break text without quotes survive every path: sources, views of every kind, changelogs, sinks, files."""

# ruff: noqa: S608  # the texts are made of names in this module
from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.schema.identifiers import quoted
from tests.support.hostile_names import HOSTILE_NAMES

COLUMNS = ", ".join(map(quoted, HOSTILE_NAMES))
NUMBER = {name: number for number, name in enumerate(HOSTILE_NAMES)}


@pytest.fixture(autouse=True)
def _no_substitution(spark):
    """A name with `${...}` must reach Spark's parser as it is."""
    before = spark.conf.get("spark.sql.variable.substitute")
    spark.conf.set("spark.sql.variable.substitute", "false")
    yield
    spark.conf.set("spark.sql.variable.substitute", before)


def row(number: int) -> dict[str, int | None]:
    values = {name: None if (number + place) % 7 == 0 else number * 100 + place for name, place in NUMBER.items()}
    return {"id": number, **values}


def shown(db, query: str) -> Counter:
    return Counter(map(repr, db.sql(query).fetchall()))


def integrated(db, view: str) -> Counter:
    found: Counter = Counter()
    for _, _, weight, _, *values in db.changes(view).fetchall():
        found[repr(tuple(values))] += weight
    return +found


def test_hostile_names_survive_every_kind_of_view(spark, db):
    declared = ", ".join(f"{quoted(name)} INT" for name in HOSTILE_NAMES)
    db.sql(f"CREATE SOURCE s (id INT, {declared}) WITH (connector = 'push')")
    views = {
        "everything": "SELECT * FROM s",
        "computed": "SELECT id, "
        + ", ".join(f"{quoted(name)} + 1 AS {quoted(name)}" for name in HOSTILE_NAMES)
        + " FROM s WHERE "
        + " OR ".join(f"{quoted(name)} > 0" for name in HOSTILE_NAMES[:9]),
        "keys": f"SELECT {COLUMNS}, COUNT(*) AS n FROM s GROUP BY {COLUMNS}",
        "totals": "SELECT id % 2 AS parity, "
        + ", ".join(f"SUM({quoted(name)}) AS {quoted(name)}" for name in HOSTILE_NAMES[:12])
        + " FROM s GROUP BY id % 2",
        "once": f"SELECT DISTINCT {COLUMNS} FROM s",
        "twice": f"SELECT {COLUMNS} FROM s UNION ALL SELECT {COLUMNS} FROM everything",
        "above": f"SELECT {COLUMNS} FROM everything WHERE id > 0",
        "of totals": f"SELECT {', '.join(map(quoted, HOSTILE_NAMES[:12]))} FROM totals WHERE parity IS NOT NULL",
    }
    for name, query in views.items():
        db.sql(f"CREATE MATERIALIZED VIEW {quoted(name)} AS {query}")
    model = []
    for epoch in range(2):
        added = [row(number) for number in range(epoch * 2, epoch * 2 + 3)]
        model += added
        db.insert("s", added)
        db.run()
    schema = pa.schema([pa.field("id", pa.int32()), *(pa.field(name, pa.int32()) for name in HOSTILE_NAMES)])
    # A session of its own: temporary views of the shared one would stay for the other tests.
    oracle = spark.newSession()
    oracle.conf.set("spark.sql.variable.substitute", "false")
    oracle.createDataFrame(pa.Table.from_pylist(model, schema)).createOrReplaceTempView("s")
    for name, query in views.items():
        batch = oracle.sql(query)
        batch.createOrReplaceTempView(quoted(name))
        found = db.sql(f"SELECT * FROM {quoted(name)}").arrow()
        assert found.column_names == batch.columns
        rows = Counter(map(repr, zip(*(column.to_pylist() for column in found.columns), strict=True)))
        assert rows == Counter(repr(tuple(each)) for each in batch.collect()), name
        assert integrated(db, name) == rows, name


def test_hostile_names_that_records_bring_become_columns_of_views_and_sinks(db, tmp_path):
    inbox, lines, columns = tmp_path / "in", tmp_path / "lines", tmp_path / "columns"
    inbox.mkdir()
    db.sql(f"CREATE SOURCE s (id INT) WITH (connector = 'files', path = '{inbox}', format = 'json', evolve = 'auto')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM s")
    db.sql("CREATE MATERIALIZED VIEW once AS SELECT DISTINCT * FROM s")
    db.sql(f"CREATE SINK a FROM v WITH (connector = 'files', format = 'json', path = '{lines}')")
    db.sql(f"CREATE SINK b FROM once WITH (connector = 'files', format = 'parquet', path = '{columns}')")
    records = [row(number) for number in range(1, 4)]
    (inbox / "1.json").write_text("\n".join(map(json.dumps, records)))
    # What cannot be a column is left out, as a field that no column is for.
    (inbox / "2.json").write_text(json.dumps(records[0] | {"": 1, "new\nline": 2, "x" * 300: 3}))
    db.run()
    assert db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall() == []
    found = db.sql("SELECT * FROM v").arrow()
    assert set(found.column_names) == {"id", *HOSTILE_NAMES}
    wanted = Counter(repr(sorted(record.items())) for record in [*records, records[0]])
    assert Counter(repr(sorted(record.items())) for record in found.to_pylist()) == wanted
    written = [json.loads(line) for file in lines.rglob("*.json*") for line in file.read_text().splitlines()]
    rows = [{name: each[name] for name in found.column_names} for each in written]
    assert Counter(repr(sorted(record.items())) for record in rows) == wanted
    stored = pa.concat_tables([pq.read_table(file) for file in columns.rglob("*.parquet")])
    assert {"id", *HOSTILE_NAMES} <= set(stored.column_names)
    assert stored.num_rows == 3


def test_hostile_names_inside_structs_as_keys_and_after_a_live_rename(spark, db):
    names = [name for name in HOSTILE_NAMES if name != "x" * 255]
    fields = ", ".join(f"{quoted(name)}: INT" for name in names)
    db.sql(f"CREATE SOURCE s (`i.d` INT NOT NULL, `the``row` STRUCT<{fields}>, plain INT, PRIMARY KEY (`i.d`)) "
           "WITH (connector = 'push', changelog = 'upsert')")  # fmt: skip
    reached = ", ".join(f"`the``row`.{quoted(name)}" for name in names)
    db.sql("CREATE MATERIALIZED VIEW grouped AS SELECT `the``row`, COUNT(*) AS n FROM s GROUP BY `the``row`")
    db.sql(f"CREATE MATERIALIZED VIEW reached AS SELECT {reached} FROM s")
    db.sql("CREATE MATERIALIZED VIEW everything AS SELECT * FROM s")
    inner = [{name: number * 10 + place for name, place in zip(names, range(99), strict=False)} for number in range(2)]
    db.insert("s", [{"i.d": 1, "the`row": inner[0], "plain": 1}, {"i.d": 2, "the`row": inner[0], "plain": 2}])
    db.run()
    db.sql("ALTER SOURCE s RENAME COLUMN plain TO `now.a``b`")
    db.insert("s", [{"i.d": 1, "the`row": inner[1], "now.a`b": 3}])
    db.run()
    assert sorted(n for _, n in db.sql("SELECT * FROM grouped").fetchall()) == [1, 1]
    assert Counter(db.sql("SELECT * FROM reached").fetchall()) == Counter(tuple(each.values()) for each in inner)
    assert db.sql("SELECT * FROM reached").arrow().column_names == names
    assert sorted(db.sql("SELECT `i.d`, `now.a``b` FROM everything").fetchall()) == [(1, 3), (2, 2)]
    for view in ("grouped", "reached"):
        assert integrated(db, view) == shown(db, f"SELECT * FROM {view}")
