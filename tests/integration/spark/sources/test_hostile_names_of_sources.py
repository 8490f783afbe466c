"""Names that break text without quotes, as columns of files and tables, as keys, and as columns of windows."""

# ruff: noqa: S608  # the texts are made of names in this module
from __future__ import annotations

import csv
import json
from collections import Counter
from itertools import cycle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from laminae.schema.identifiers import quoted
from tests.support.hostile_names import FOLDED_PAIRS, HOSTILE_NAMES
from tests.support.iceberg import put

COLUMNS = ", ".join(map(quoted, HOSTILE_NAMES))
EMITS = ("CHANGES", "ON UPDATE", "ON WATERMARK", "ON WINDOW CLOSE", "FINAL", "EVERY '1' SECOND")
UNUSABLE = ["new\nline", "x" * 300, "__laminae_report"]
MIDNIGHT = 1_704_067_200
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(autouse=True)
def _no_substitution(spark):
    """A name with `${...}` must reach Spark's parser as it is."""
    before = spark.conf.get("spark.sql.variable.substitute")
    spark.conf.set("spark.sql.variable.substitute", "false")
    yield
    spark.conf.set("spark.sql.variable.substitute", before)


def row(number: int) -> dict[str, int]:
    return {name: number * 100 + place for place, name in enumerate(HOSTILE_NAMES)}


def counted(rows: list[dict[str, object]]) -> Counter[str]:
    return Counter(repr(sorted(each.items())) for each in rows)


def shown(db, relation: str, names=HOSTILE_NAMES) -> Counter[str]:
    return counted(db.sql(f"SELECT {', '.join(map(quoted, names))} FROM {quoted(relation)}").arrow().to_pylist())


def integrated(db, view: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in db.changes(view).arrow().to_pylist():
        found[repr(sorted((name, each[name]) for name in HOSTILE_NAMES))] += each["_weight"]
    return +found


def letters(db) -> list[tuple[object, ...]]:
    return db.sql("SELECT source_name, reason FROM laminar_catalog.dead_letters").fetchall()


def test_hostile_names_in_files_are_columns_declared_and_columns_that_come(db, tmp_path):
    records = [row(number) for number in (1, 2)]
    sources = []
    for kind in ("csv", "parquet"):
        inbox = tmp_path / kind
        inbox.mkdir()
        options = f"connector = 'files', path = '{inbox}', format = '{kind}'"
        declared = ", ".join(f"{quoted(name)} BIGINT" for name in HOSTILE_NAMES)
        db.sql(f"CREATE SOURCE {kind}_declared ({declared}) WITH ({options})")
        db.sql(f"CREATE SOURCE {kind}_coming (id INT) WITH ({options}, evolve = 'auto')")
        sources += [f"{kind}_declared", f"{kind}_coming"]
    for source in sources:
        db.sql(f"CREATE MATERIALIZED VIEW v_{source} AS SELECT * FROM {source}")
    with (tmp_path / "csv" / "1.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HOSTILE_NAMES)
        writer.writeheader()
        writer.writerows(records)
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "parquet" / "1.parquet")
    db.run()
    assert letters(db) == []
    for source in sources:
        # A name that a header brings is one without the spaces around it, as `id, amount` is meant.
        names = [name.strip() for name in HOSTILE_NAMES] if source == "csv_coming" else HOSTILE_NAMES
        expected = counted([dict(zip(names, each.values(), strict=True)) for each in records])
        for relation in (source, f"v_{source}"):
            assert shown(db, relation, names) == expected, relation


def test_names_that_no_column_can_have_are_left_out_and_the_source_goes_on(db, lake, tmp_path):
    names = ["id", *UNUSABLE, "a.b"]
    row = {name: place for place, name in enumerate(names)}
    inner = {"in": 1, **dict.fromkeys(UNUSABLE, 2)}
    for kind in ("csv", "json", "parquet"):
        inbox = tmp_path / kind
        inbox.mkdir()
        given = f"connector = 'files', path = '{inbox}', format = '{kind}', evolve = 'auto'"
        db.sql(f"CREATE SOURCE of_{kind} (id BIGINT) WITH ({given})")
    first = pa.table({"id": [0]})
    write_deltalake(tmp_path / "delta", first, configuration=FEED)
    db.sql(f"CREATE SOURCE of_delta (id BIGINT) WITH (connector = 'delta', path = '{tmp_path}/delta')")
    table = lake.table("t", {"id": pa.int64()})
    table.append(first)
    db.sql(f"CREATE SOURCE of_iceberg (id BIGINT) WITH {lake.options('t')}")
    db.run()
    (tmp_path / "json" / "1.json").write_text(json.dumps({**row, "st": inner}))
    with (tmp_path / "csv" / "1.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, row.values()])
    later = pa.Table.from_pylist([{**row, "st": inner}])
    pq.write_table(later, tmp_path / "parquet" / "1.parquet")
    write_deltalake(tmp_path / "delta", later, mode="append", schema_mode="merge")
    with table.update_schema() as update:
        update.union_by_name(later.schema)
    table.append(later)
    db.run()
    for kind in ("csv", "json", "parquet", "delta", "iceberg"):
        # Fields inside of a struct are never columns of a plan, and may be called so.
        expected = {"id": 0, "a.b": len(names) - 1} | ({"st": inner} if kind != "csv" else {})
        found = db.sql(f"SELECT * FROM of_{kind}").arrow().to_pylist()
        assert expected in found, (kind, found, letters(db))


def test_of_two_names_that_some_reader_takes_for_one_neither_is_lost_without_a_word(db, tmp_path):
    for kind in ("csv", "json", "parquet"):
        (tmp_path / kind).mkdir()
        given = f"connector = 'files', path = '{tmp_path / kind}', format = '{kind}', evolve = 'auto'"
        db.sql(f"CREATE SOURCE of_{kind} (n BIGINT) WITH ({given})")
    for number, pair in enumerate(FOLDED_PAIRS):
        row = {"n": number, pair[0]: 1, pair[1]: 2}
        (tmp_path / "json" / f"{number}.json").write_text(json.dumps(row))
        with (tmp_path / "csv" / f"{number}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([row, row.values()])
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / "parquet" / f"{number}.parquet")
    db.run()
    for kind in ("csv", "json", "parquet"):
        refused = [reason for source, reason in letters(db) if source == f"of_{kind}"]
        assert len(refused) == len(FOLDED_PAIRS), (kind, refused, db.sql(f"SELECT * FROM of_{kind}").fetchall())
        assert all("case" in reason for reason in refused), refused


def test_hostile_names_of_lake_tables_are_columns_declared_and_columns_that_come(db, lake, tmp_path):
    first = {"id": [1]}
    write_deltalake(tmp_path / "delta", pa.table(first), configuration=FEED)
    table = put(lake.table("t", {"id": pa.int64()}), **first)
    db.sql(f"CREATE SOURCE in_delta (id BIGINT) WITH (connector = 'delta', path = '{tmp_path}/delta')")
    db.sql(f"CREATE SOURCE in_iceberg (id BIGINT) WITH {lake.options('t')}")
    for source in ("in_delta", "in_iceberg"):
        db.sql(f"CREATE MATERIALIZED VIEW v_{source} AS SELECT * FROM {source}")
    db.run()
    records = [row(number) for number in (1, 2)]
    later = pa.Table.from_pylist([{"id": 2, **each} for each in records])
    write_deltalake(tmp_path / "delta", later, mode="append", schema_mode="merge")
    with table.update_schema() as update:
        update.union_by_name(later.schema)
    table.append(later)
    db.run()
    assert letters(db) == []
    expected = counted([*records, dict.fromkeys(HOSTILE_NAMES)])
    for source in ("in_delta", "in_iceberg"):
        assert shown(db, source) == expected, source
        assert shown(db, f"v_{source}") == expected, source


def test_a_key_of_hostile_names_finds_its_row(db):
    declared = ", ".join(f"{quoted(name)} INT NOT NULL" for name in HOSTILE_NAMES)
    db.sql(
        f"CREATE SOURCE s ({declared}, `the.value` STRING, `go``ne` BOOLEAN, `se.q` BIGINT, PRIMARY KEY ({COLUMNS})) "
        "WITH (changelog = 'upsert', deleted_by = 'go`ne', sequence_by = 'se.q')"
    )
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {COLUMNS}, `the.value` FROM s")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT `the.value`, COUNT(*) AS `n.n` FROM s GROUP BY `the.value`")
    steps = [(1, "a", False, 1), (2, "b", False, 1), (1, "late", False, 0), (1, "c", False, 2), (2, None, True, 2)]
    for some in (steps[:2], steps[2:]):
        for number, value, gone, order in some:
            db.insert("s", [{**row(number), "the.value": value, "go`ne": gone, "se.q": order}])
        db.run()
    assert shown(db, "s") == shown(db, "v") == integrated(db, "v") == counted([row(1)])
    assert db.sql("SELECT `the.value` FROM v").fetchall() == [("c",)]
    assert db.sql("SELECT * FROM n").fetchall() == [("c", 1)]


def test_hostile_names_survive_windows_under_every_strategy(db):
    declared = ", ".join(f"{quoted(name)} INT" for name in HOSTILE_NAMES)
    db.sql(
        f"CREATE SOURCE s (`a``t.` TIMESTAMP, {declared}, `su.m` INT, "
        "WATERMARK FOR `a``t.` AS `a``t.` - INTERVAL '0' SECOND)"
    )
    windows = {
        "tumble": "window(`a``t.`, '10 seconds')",
        "hop": "window(`a``t.`, '10 seconds', '5 seconds')",
    }
    # Every name under a window, and every strategy: each has a share of the names, because keys are what takes time.
    kinds = zip(cycle(windows), EMITS, strict=False)
    views = [(kind, emit, HOSTILE_NAMES[place :: len(EMITS)]) for place, (kind, emit) in enumerate(kinds)]
    for kind, emit, names in views:
        window, keys = windows[kind], ", ".join(map(quoted, names))
        db.sql(
            f"CREATE MATERIALIZED VIEW {quoted(f'{kind}.{emit}')} AS SELECT {window}.start AS `st.art`, {keys}, "
            f"SUM(`su.m`) AS `to``tal` FROM s GROUP BY {window}, {keys} EMIT {emit}"
        )
    for seconds, value in (((1, 1), 10), ((3, 12), 20), ((59, 59), 1)):
        db.insert("s", [{"a`t.": f"2024-01-01T00:00:{at:02}Z", **row(1), "su.m": value} for at in seconds])
        db.run()
    expected = {"tumble": {0: 40, 10: 20}, "hop": {-5: 40, 0: 40, 5: 20, 10: 20}}
    for kind, emit, names in views:
        name = quoted(f"{kind}.{emit}")
        rows = db.sql(f"SELECT unix_timestamp(`st.art`), `to``tal` FROM {name}").fetchall()
        total = {start - MIDNIGHT: value for start, value in rows if start < MIDNIGHT + 40}
        assert total == expected[kind], name
        values = {each: row(1)[each] for each in names}
        assert set(shown(db, f"{kind}.{emit}", names)) == set(counted([values])), name
