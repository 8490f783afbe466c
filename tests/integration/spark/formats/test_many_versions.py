"""More schema versions than one plan decodes: live records and a re-read come out the same."""

import random
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

import laminae as lm
from laminae.engine.epochs.epoch_plan import MOST_STAMPS, plan_epoch
from laminae.engine.epochs.version_runs import can_share
from laminae.spark.driver.storage import Storage
from laminae.spark.formats.json.decode import decode
from laminae.spark.formats.json.records import json_records
from laminae.spark.formats.json.shared_decoder import _Shared
from laminae.spark.formats.protocol import ERROR, ROW, UNKNOWN
from laminae.spark.source_tables.source_rows import _Reading
from laminae.spark.sources.protocol import LogRange
from laminae.spark.sources.registry import open_source
from tests.support.version_histories import alter, record, write

VERSIONS = MOST_STAMPS + 4


@pytest.fixture
def db(spark, tmp_path):
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database


def test_stamped_records_of_more_versions_than_a_plan_holds(db):
    db.sql("CREATE SOURCE s (id BIGINT NOT NULL)")
    for number in range(VERSIONS):
        db.insert("s", [{"id": number, f"c{number}": "kept", "other": "of no version"}])
        db.sql(f"ALTER SOURCE s ADD COLUMN c{number + 1} STRING DEFAULT 'none'")
    db.run()
    rows = db.sql(f"SELECT id, c1, c{VERSIONS - 1} FROM s ORDER BY id").fetchall()  # noqa: S608  # fixed above
    assert [row[0] for row in rows] == list(range(VERSIONS))
    assert [row[1] for row in rows] == ["none", "kept", *["none"] * (VERSIONS - 2)]
    assert [row[2] for row in rows] == [*["none"] * (VERSIONS - 1), "kept"]


def test_records_whose_place_gives_them_more_versions_than_a_plan_holds(db, tmp_path):
    incoming = tmp_path / "in"
    incoming.mkdir()
    db.sql(f"CREATE SOURCE s (id BIGINT) WITH (connector = 'files', format = 'json', path = '{incoming}')")
    pipeline = db.start("10 milliseconds")
    try:
        for number in range(VERSIONS):
            (incoming / f".{number}").write_text(f'{{"id": {number}, "c{number}": "kept"}}\n')
            (incoming / f".{number}").rename(incoming / f"{number:03}.json")
            pipeline.process_all_available()
            db.sql(f"ALTER SOURCE s ADD COLUMN c{number + 1} STRING")
    finally:
        pipeline.stop()
    rows = db.sql(f"SELECT id, c1, c{VERSIONS - 1} FROM s ORDER BY id").fetchall()  # noqa: S608  # fixed above
    assert rows == [(n, "kept" if n == 1 else None, "kept" if n == VERSIONS - 1 else None) for n in range(VERSIONS)]


def by_each_version_alone(db, reading):
    """The rows and the texts without one, each record read by a decoder of its own version as its epoch did."""
    rows, refused = [], []
    for epoch in db._catalog.epochs(reading.source.id):
        past = reading._as_of(epoch.version)
        raw = reading.log.source.read(reading.spark, LogRange(epoch.start_offsets, epoch.end_offsets))
        for version in {row["version"] for row in raw.select("version").distinct().collect()}:
            known = reading.versions[: epoch.version]
            table = reading._table(past, known[version - 1 : version] or known[-1:], epoch.epoch)
            decoded = json_records(raw.where(raw["version"] == version), table)
            rows += reading._rows(past, decoded).toArrow().to_pylist()
            letters = decoded.records.where(F.col(ERROR).isNotNull())
            refused += [bytes(row["value"]) for row in letters.select("value").collect()]
    return texts_of(rows), sorted(refused)


def texts_of(rows):
    return sorted(map(str, rows))


@pytest.mark.parametrize(
    ("policy", "seed"), [("ignore", 1), ("dead_letter", 2), pytest.param("ignore", 3, marks=pytest.mark.chaos)]
)
def test_every_record_is_read_as_its_own_version_reads_it(db, seed, policy):
    """Live epochs, SELECT and a backfill, over ALTERs of every kind; the model has one decoder for each record."""
    chance = random.Random(seed)
    db.sql(f"CREATE SOURCE s (id BIGINT NOT NULL) WITH (on_rejected = '{policy}')")
    db.sql("CREATE MATERIALIZED VIEW live AS SELECT id FROM s")
    changes, written = [], []
    for number in range(1, 15):
        texts = [record(chance, number * 100 + place) for place in range(8)]
        # Some are of a version to come, which their epoch does not know.
        write(db, texts, number + (chance.random() < 0.1))
        written += texts
        if number % 4 == 0:
            db.run()
        changes.append(alter(db, chance))
    db.run()
    reading = reading_of(db)
    expected, refused = by_each_version_alone(db, reading)
    found = db.sql("SELECT * FROM s").arrow().to_pylist()
    assert texts_of(found) == expected, changes
    letters = db.sql("SELECT value FROM laminar_catalog.dead_letters").fetchall()
    assert sorted(bytes(value) for (value,) in letters) == refused, changes
    assert len(expected) + len(refused) == len(written)
    ids = sorted(row["id"] for row in found)
    assert sorted(row[0] for row in db.sql("SELECT id FROM live").fetchall()) == ids, changes
    db.sql("CREATE MATERIALIZED VIEW late AS SELECT * FROM s")
    db.run()
    assert texts_of(db.sql("SELECT * FROM late").arrow().to_pylist()) == expected, changes


@pytest.mark.parametrize("seed", range(2))
def test_a_shared_decoder_gives_the_rows_the_errors_and_the_unknown_fields_of_each_version(db, seed):
    """As a live epoch of many versions reads them, under the newest of them."""
    chance = random.Random(100 + seed)
    db.sql("CREATE SOURCE s (id BIGINT) WITH (on_rejected = 'dead_letter')")
    changes = [alter(db, chance) for _ in range(15)]
    for version in range(1, 17):
        write(db, [record(chance, version * 100 + place) for place in range(12)], version)
    reading = reading_of(db)
    raw = reading.log.source.read(reading.spark, LogRange(reading.log.source.initial(), reading.log.source.latest()))
    table = reading._table(reading.source, reading.versions, 0)
    assert can_share(table)
    alone = [replace(table, decoders=(decoder,)) for decoder in table.decoders]
    parts = [outcomes(raw.where(raw["version"] == one.decoders[0].version), one) for one in alone]
    found = outcomes(raw, table)
    assert len(found) == 16 * 12
    assert sorted(found) == sorted(outcome for part in parts for outcome in part), changes


def outcomes(raw, table):
    """Of each record; which of several problems is named first may differ."""
    row = F.to_json(F.when(F.col(ERROR).isNull(), F.col(ROW)))
    found = decode(raw, table).select("value", "version", F.coalesce(row, F.lit("refused")), UNKNOWN)
    return [(bytes(value), *others) for value, *others in found.collect()]


def reading_of(db):
    source, storage = db._catalog.source("s"), Storage(db.home)
    log = open_source(source, db.home)
    return _Reading(SparkSession.getActiveSession(), storage, source, db._catalog.versions(source.id), log)


MIXED = (
    "ADD COLUMN c{0} INT", "ADD COLUMN d{0} STRING DEFAULT 'x'", "ALTER COLUMN c{1} TYPE BIGINT",
    "RENAME COLUMN c{1} TO r{1}", "ALTER COLUMN d{1} SET DEFAULT 'y'", "RENAME COLUMN r{1} TO q{1}", "DROP COLUMN d{1}",
)  # fmt: skip


@pytest.mark.parametrize("changes", [("ADD COLUMN c{0} BIGINT",), MIXED], ids=["added", "mixed"])
def test_a_read_of_many_versions_is_one_scan_in_one_job_and_an_epoch_has_the_versions_of_its_records(
    db, monkeypatch, changes
):
    """106 versions were 106 plans over the whole log: 726 tasks and 984 s; an epoch of one row took 18 s."""
    db.sql("CREATE SOURCE s (id BIGINT NOT NULL)")
    versions = 42
    for number in range(versions):
        db.insert("s", [{"id": number}])
        change = changes[number % len(changes)]
        # Those that change a column change the last one that was added.
        db.sql(f"ALTER SOURCE s {change.format(number, number - number % len(changes) + ('d{1}' in change))}")
    tables = []

    def planned(*given):
        plan = plan_epoch(*given)
        tables.append([decoder.version for decoder in plan.table.decoders])
        return plan

    monkeypatch.setattr("laminae.spark.epoch.runner.plan_epoch", planned)
    db.run()
    db.insert("s", [{"id": versions}])
    db.run()
    assert [len(table) for table in tables] == [versions + 1, 1]
    rows = db.sql("SELECT * FROM s").spark()
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan") == 1
    reading = reading_of(db)
    assert _Shared(reading._table(reading.source, reading.versions, 0)).layers == (1 if len(changes) == 1 else 2)
    assert rows.rdd.getNumPartitions() <= rows.sparkSession.sparkContext.defaultParallelism
    tracker = rows.sparkSession.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    assert db.sql("SELECT count(*), sum(id) FROM s").fetchall() == [(versions + 1, sum(range(versions + 1)))]
    # The second is that of the aggregate, behind its shuffle.
    assert len(tracker.getJobIdsForGroup(None)) - before <= 2


def test_epochs_whose_records_were_refused_are_read_together_and_refuse_them_again(db):
    """Each epoch with a dead letter was a plan of its own: it knows no version to come, and has its own NOT NULL."""
    db.sql("CREATE SOURCE s (id BIGINT NOT NULL)")
    changes = (
        "ADD COLUMN c INT",
        *(f"ALTER COLUMN c {change}" for change in ("SET NOT NULL", "TYPE BIGINT", "DROP NOT NULL")),
    )
    for number, change in enumerate([*changes, "ADD COLUMN d INT", "DROP COLUMN d"], 1):
        write(db, [f'{{"id": {number}, "c": {number}}}', '{"id": "no"}'], number)
        write(db, ['{"id": -1}'], number + 1)
        db.run()
        db.sql(f"ALTER SOURCE s {change}")
    rows = db.sql("SELECT * FROM s").spark()
    assert rows._jdf.queryExecution().executedPlan().toString().count("FileScan") == 1
    assert sorted(map(tuple, rows.collect())) == [(1, None), *((number, number) for number in range(2, 7))]
    assert db.sql("SELECT count(*) FROM laminar_catalog.dead_letters").fetchall() == [(12,)]
