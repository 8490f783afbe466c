"""Debezium's events about tables without a PRIMARY KEY: a bag of rows, in which equal ones count."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from laminae.codec.value_encodings import UNAVAILABLE
from laminae.errors import InvalidOption
from laminae.spark.formats.debezium.events import EVENT, OLD, TRUNCATE
from laminae.spark.formats.protocol import ERROR, ROW
from laminae.spark.source_tables.keyless import KeylessTable
from laminae.state import check_home
from laminae.state.compatibility import Kind
from laminae.trace.manifest import Manifest
from laminae.views.kernels.multiset.kernel import BAG
from laminae.views.kernels.multiset.truncation import EventPosition, PartitionProgress, is_covered, is_late, is_repeated
from tests.support.debezium_events import connect_field, envelope, message, told
from tests.support.debezium_fixtures import case
from tests.support.things import maker_of_things, reasons, rows, told_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("time_of_day")

COLUMNS = "n INT, note STRING"
FULL = "REPLICA IDENTITY FULL"


@pytest.fixture
def things(db, inbox):
    return maker_of_things(db, inbox, COLUMNS)


ONE, TWO, UNO = {"n": 1, "note": "one"}, {"n": 2, "note": "two"}, {"n": 1, "note": "uno"}
FIELDS = [connect_field("n", "int32"), connect_field("note", "string")]


def with_schema(op: str, lsn: int, after=None, before=None) -> str:
    return told(FIELDS, op, lsn, after, before)


def odd(op: str, lsn: int, after=None, before=None) -> str:
    """Not as Kafka Connect writes it: what it says is parsed as a whole."""
    return json.dumps({"extra": [1], **envelope(op, lsn, after, before)})


@pytest.mark.parametrize("sent", [message, with_schema, odd])
def test_each_kind_of_event(db, things, sent: Callable[..., str]):
    read = things(evolve="auto")
    assert read(sent("r", 10, ONE), sent("r", 10, ONE), sent("r", 10, TWO)) == [(1, "one"), (1, "one"), (2, "two")]
    assert read(sent("c", 11, TWO), sent("u", 12, UNO, ONE)) == [(1, "one"), (1, "uno"), (2, "two"), (2, "two")]
    assert read(sent("d", 13, before=TWO), None, sent("m", 14)) == [(1, "one"), (1, "uno"), (2, "two")]
    assert read(sent("c", 15, ONE), sent("t", 16), sent("c", 17, TWO)) == [(2, "two")]
    assert told_of(db, "dropped") == [0, 0, 2, 1]
    assert told_of(db, "anomalies") == [0, 0, 0, 0]
    assert reasons(db) == []


def test_what_a_real_connector_sends(db, things):
    """`tests/fixtures/debezium`: two rows that are equal, one statement that changes both."""
    read = things()
    snapshot = [each.value.decode() for each in case("json", "snapshot").messages if each.table == "no_key"]
    assert read(*snapshot) == [(1, "one"), (1, "one")]
    changes = [None if each.value is None else each.value.decode() for each in case("json", "without_key").messages]
    assert read(*changes) == [(1, "uno"), (1, "uno")]
    assert (told_of(db, "anomalies"), reasons(db)) == ([0, 0], [])


def test_event_without_a_whole_row_before_it_is_a_dead_letter(db, things):
    read = things()
    assert read(
        message("c", 10, ONE),
        message("u", 11, UNO),
        message("d", 12),
        message("u", 13, UNO, {"n": None, "note": None}),
        message("c", 14),
        odd("d", 15),
    ) == [(1, "one")]
    found = reasons(db)
    assert len(found) == 5
    assert [FULL in reason for reason in found] == [False, True, True, True, True]
    assert found[0] == "after, which contains the row, is missing"
    assert sum("before has no values" in reason for reason in found) == 1


def test_default_of_a_column_is_no_value_of_the_row_before(db, things):
    read = things("n INT, size INT DEFAULT 5")
    assert read(
        message("c", 10, {"n": None}),
        message("d", 11, before={"n": None}),
        odd("d", 12, before={}),
        message("d", 13, before={"n": None, "size": None}),
    ) == [(None, 5)]
    assert ["before has no values" in reason for reason in reasons(db)] == [True, True, True]
    assert read(message("d", 14, before={"n": None, "size": 5})) == []


def test_column_that_nobody_declared_says_that_the_row_before_is_whole(db, things):
    read = things("note STRING")
    assert read(message("c", 10, {"n": 1, "note": None}), message("c", 11, ONE)) == [("one",), (None,)]
    assert read(message("d", 12, before={"n": 1, "note": None})) == [("one",)]
    assert reasons(db) == []


def test_event_with_a_bad_half_changes_nothing(db, things):
    read = things("n INT NOT NULL, note STRING")
    assert read(
        message("c", 10, ONE),
        message("u", 11, {"n": "x", "note": "one"}, ONE),
        message("u", 12, UNO, {"n": "x", "note": "one"}),
        message("u", 13, {"n": None, "note": "one"}, ONE),
        message("d", 14, before={"n": None, "note": "one"}),
        message("u", 15, UNO, ONE)[:-1],
    ) == [(1, "one")]
    found = reasons(db)
    assert len(found) == 5
    assert sum(reason.startswith("in before: n") for reason in found) == 2
    # Each letter is the whole message.
    letters = [bytes(value) for (value,) in db.sql("SELECT value FROM laminar_catalog.dead_letters").fetchall()]
    assert all(letter.startswith(b'{"before":') for letter in letters)


def test_value_that_did_not_change_is_that_of_the_row_before(db, things):
    read = things("n INT, note STRING, raw BINARY, tags ARRAY<STRING>")
    old = {"n": 1, "note": "long", "raw": "AP8=", "tags": ["x"]}
    apart = {"note": UNAVAILABLE, "raw": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "tags": [UNAVAILABLE]}
    assert read(message("c", 10, old), message("u", 11, {"n": 2, **apart}, old)) == [(2, "long", b"\x00\xff", ["x"])]
    assert read(
        message("u", 12, {"n": 3, **apart}, {"n": 2, **apart}),
        message("d", 13, before={**old, "note": UNAVAILABLE}),
        message("c", 14, {**old, "tags": [UNAVAILABLE]}),
    ) == [(2, "long", b"\x00\xff", ["x"])]
    found = reasons(db)
    assert found[:2] == [f"in before: note{was_not_sent}" for _ in range(2)]
    assert found[2:] == [f"tags{was_not_sent}"]


was_not_sent = " is unchanged and was not sent, and before does not contain it either"


def test_row_that_was_never_there_is_told_and_takes_nothing(db, things):
    """So it is with a table that has a key upstream, and the default identity: `before` has the key alone."""
    read = things()
    read(message("c", 10, ONE), message("d", 11, before={"n": 1, "note": None}))
    assert rows(db) == [(1, "one")]
    assert told_of(db, "anomalies") == [1]
    shown = db.sql("SELECT * FROM laminar_catalog.anomalies").fetchall()
    assert [(name, *counts) for name, _, *counts in shown] == [("things", 1, 0, None)]
    # Partitions come in no order: it recovers when its insert comes.
    assert read(message("c", 9, {"n": 1, "note": None})) == [(1, "one")]
    assert told_of(db, "anomalies") == [1, -1]


def test_truncation_takes_what_stands_before_it_in_the_log(db, things):
    read = things()
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT n, COUNT(*) AS c FROM things GROUP BY n")
    read(message("c", 10, ONE), message("c", 11, ONE), message("c", 12, TWO))
    assert rows(db, "SELECT * FROM counts") == [(1, 2), (2, 1)]
    assert read(message("c", 13, TWO), message("t", 14), message("c", 15, ONE)) == [(1, "one")]
    assert rows(db, "SELECT * FROM counts") == [(1, 1)]
    # Sent again from before the truncation on, events leave the same.
    assert read(message("c", 13, TWO), message("t", 14), message("c", 15, ONE)) == [(1, "one")]
    assert read(message("t", 16)) == []
    assert rows(db, "SELECT * FROM counts") == []
    assert reasons(db) == []


def test_number_too_large_to_order_events_is_a_dead_letter(db, things):
    read = things()
    read(message("c", 10, ONE), message("c", 11, TWO))
    large = [message("t", 1 << 62), odd("d", 1 << 62, before=ONE), message("c", 1 << 62, ONE)]
    assert read(*large, message("d", (1 << 62) - 1, before=ONE)) == [(2, "two")]
    assert set(reasons(db)) == {"source.lsn, which orders events, is not within -2^62 and 2^62"}
    assert len(reasons(db)) == 3


def test_events_that_are_sent_again_count_again(db, things):
    """As the guide says: without a key nothing tells a second insert from the first one sent twice."""
    read = things()
    assert read(message("c", 10, ONE)) == [(1, "one")]
    assert read(message("c", 10, ONE)) == [(1, "one"), (1, "one")]


def test_views_sinks_and_changes_follow_a_bag(db, things, tmp_path):
    read = things()
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT note, COUNT(*) AS c, SUM(n) AS s FROM things GROUP BY note")
    out = tmp_path / "out"
    db.sql(f"CREATE SINK copies FROM things WITH (connector = 'files', path = '{out}', format = 'json')")
    read(message("c", 10, ONE), message("c", 11, ONE), message("c", 12, TWO))
    read(message("u", 13, UNO, ONE), message("d", 14, before=TWO))
    assert rows(db, "SELECT * FROM sums") == [("one", 1, 1), ("uno", 1, 1)]
    # A later view is filled from the bag.
    db.sql("CREATE MATERIALIZED VIEW later AS SELECT n, COUNT(*) AS c FROM things GROUP BY n")
    db.run()
    assert rows(db, "SELECT * FROM later") == [(1, 2)]
    read(message("c", 15, ONE))
    assert rows(db, "SELECT * FROM later") == [(1, 3)]
    shown = [(op, weight, n, note) for _, op, weight, _, n, note in db.changes("things").fetchall()]
    assert Counter(shown[:2]) == Counter([("+I", 2, 1, "one"), ("+I", 1, 2, "two")])
    assert Counter(shown[2:5]) == Counter([("-D", -1, 1, "one"), ("+I", 1, 1, "uno"), ("-D", -1, 2, "two")])
    events = rows(db, "SELECT _op, _weight, n, note FROM CHANGES OF things")
    assert Counter(events) == Counter(shown)
    lines = [json.loads(line) for path in sorted(out.rglob("*.json")) for line in path.read_text().splitlines()]
    net = Counter()
    for line in lines:
        net[line["n"], line["note"]] += line["_weight"]
    assert +net == Counter({(1, "one"): 2, (1, "uno"): 1})
    with pytest.raises(InvalidOption, match="no columns of source things identify its rows"):
        db.sql(f"CREATE SINK u FROM things WITH (connector = 'files', path = '{out}2', mode = 'upsert')")
    with pytest.raises(InvalidOption, match="retracts rows"):
        db.sql(f"CREATE SINK a FROM things WITH (connector = 'files', path = '{out}3', mode = 'append')")


def test_columns_change_while_rows_are_there(db, things):
    read = things()
    db.sql("CREATE MATERIALIZED VIEW n_of AS SELECT n, COUNT(*) AS c FROM things GROUP BY n")
    read(message("c", 10, ONE), message("c", 11, ONE), message("c", 12, UNO))
    db.sql("ALTER SOURCE things ADD COLUMN size INT DEFAULT 5")
    assert rows(db) == [(1, "one", 5), (1, "one", 5), (1, "uno", 5)]
    # Upstream a new column has its default in every row, so an event has it in the row before it.
    assert read(message("u", 13, {**ONE, "size": 6}, {**ONE, "size": 5})) == [
        (1, "one", 5),
        (1, "one", 6),
        (1, "uno", 5),
    ]
    db.sql("ALTER SOURCE things RENAME COLUMN note TO word")
    assert read(message("d", 14, before={"n": 1, "word": "one", "size": 6})) == [(1, "one", 5), (1, "uno", 5)]
    db.sql("ALTER SOURCE things ALTER COLUMN n TYPE BIGINT")
    assert read(message("c", 15, {"n": 1 << 40, "word": "big", "size": None})) == [
        (1, "one", 5),
        (1, "uno", 5),
        (1 << 40, "big", None),
    ]
    db.sql("ALTER SOURCE things DROP COLUMN word")
    assert rows(db) == [(1, 5), (1, 5), (1 << 40, None)]
    # What differed in a dropped column alone is equal now.
    assert read(message("d", 16, before={"n": 1, "size": 5})) == [(1, 5), (1 << 40, None)]
    assert rows(db, "SELECT * FROM n_of") == [(1, 1), (1 << 40, 1)]
    db.sql("ALTER SOURCE things ADD COLUMN word STRING")
    assert read(message("t", 17), message("c", 18, {"n": 3, "size": 1, "word": "new"})) == [(3, 1, "new")]
    assert rows(db, "SELECT * FROM n_of") == [(3, 1)]
    assert (sum(told_of(db, "anomalies")), reasons(db)) == (0, [])


def test_columns_that_either_row_has_are_taken_up(db, things):
    read = things(evolve="auto")
    read(message("c", 10, ONE))
    assert read(message("u", 11, {**UNO, "size": None}, {**ONE, "size": None})) == [(1, "uno")]
    assert read(message("d", 12, before={**UNO, "size": 7}), message("c", 13, {**ONE, "size": 8})) == [
        (1, "one", 8),
        (1, "uno", None),
    ]
    # The row that went had a value that nobody had told of: it is another one.
    assert told_of(db, "anomalies") == [0, 0, 1]


def test_schema_that_messages_bring_brings_the_default_of_a_new_column(db, things):
    read = things(evolve="auto")
    wider = [*FIELDS, connect_field("size", "int32", default=5)]
    read(with_schema("c", 10, ONE), with_schema("c", 11, ONE))
    old, new = {**ONE, "size": 5}, {**ONE, "size": 6}
    assert read(told(wider, "u", 12, new, old)) == [(1, "one", 5), (1, "one", 6)]
    assert (sum(told_of(db, "anomalies")), reasons(db)) == (0, [])


def test_dead_letters_are_replayed_where_they_still_count(db, things):
    read = things()
    read(message("c", 10, {"n": "w", "note": "one"}), message("c", 11, TWO))
    assert rows(db) == [(2, "two")]
    db.sql("ALTER SOURCE things ADD COLUMN more INT")
    read(message("t", 12), message("c", 13, {"n": "x", "note": "y"}))
    assert rows(db) == []
    db.sql("ALTER SOURCE things DROP COLUMN note")
    db.sql("ALTER SOURCE things DROP COLUMN n")
    db.sql("ALTER SOURCE things ADD COLUMN n STRING")
    # The first one stands before the truncation, the second behind it.
    replayed = db.replay_dead_letters("things")
    assert replayed.refused == 0
    assert rows(db, "SELECT n FROM things") == [("x",)]


TYPES = {
    "price": ("DECIMAL(10, 2)", "/tM=", Decimal("-3.01")),
    "born": ("DATE", -1, date(1969, 12, 31)),
    "at": ("TIME", 3723000004, time(1, 2, 3, 4)),
    "done": ("TIMESTAMP_NTZ", 1700000000123456, datetime(2023, 11, 14, 22, 13, 20, 123456)),
    "ratio": ("DOUBLE", "NaN", None),
    "raw": ("BINARY", "AP8=", b"\x00\xff"),
    "tags": ("ARRAY<STRING>", ["x", None], ["x", None]),
    "pairs": ("MAP<STRING, INT>", {"a": 1}, None),
    "place": ("STRUCT<x: INT, y: STRING>", {"x": None, "y": "z"}, None),
}


def test_rows_of_any_type_are_found_again(db, things):
    read = things(", ".join(f"{name} {kind}" for name, (kind, _, _) in TYPES.items()))
    sent = {name: value for name, (_, value, _) in TYPES.items()}
    others = [{**sent, name: None} for name in TYPES]
    assert len(read(*(message("c", 10 + n, row) for n, row in enumerate([sent, *others])))) == 10
    (found,) = read(*(message("d", 30 + n, before=row) for n, row in enumerate(others)))
    kept = dict(zip(TYPES, found, strict=True))
    assert {name: kept[name] for name, (_, _, value) in TYPES.items() if value is not None} == {
        name: value for name, (_, _, value) in TYPES.items() if value is not None
    }
    assert read(message("d", 50, before=sent)) == []
    assert (sum(told_of(db, "anomalies")), reasons(db)) == (0, [])


def test_nested_values_are_known_by_all_of_themselves(db, things, spark):
    """To the microsecond, whatever time zone a session has, and maps in whatever order their entries come."""
    read = things("seen ARRAY<TIMESTAMP>, at STRUCT<x: TIMESTAMP_NTZ, of: MAP<STRING, ARRAY<INT>>>")

    def row(micros: int, *names: str) -> dict:
        entries = {name: [len(name), None] for name in names}
        return {"seen": [1700000000000000 + micros], "at": {"x": micros, "of": entries}}

    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        sent = [row(0, "a", "bb"), row(1, "a", "bb"), row(1, "bb", "a"), row(1, "a")]
        assert len(read(*(message("c", 10 + n, each) for n, each in enumerate(sent)))) == 4
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        assert len(read(message("c", 20, row(2, "a")), message("d", 21, before=row(1, "bb", "a")))) == 4
        assert len(read(message("d", 22, before=row(0, "bb", "a")), message("d", 23, before=row(1, "a", "bb")))) == 2
        db.sql("ALTER SOURCE things ADD COLUMN n INT")
        gone = [{**row(micros, "a"), "n": None} for micros in (1, 2)]
        assert read(*(message("d", 30 + n, before=each) for n, each in enumerate(gone))) == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert (sum(told_of(db, "anomalies")), reasons(db)) == (0, [])


def test_random_changes_leave_the_rows_of_the_table(db, things):
    """Equal rows, NULLs, updates and truncations, with epochs cut anywhere; a view beside."""
    dice, read = random.Random(20261117), things()
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT note, COUNT(*) AS c, SUM(n) AS s FROM things GROUP BY note")
    there: list[tuple[int, str | None]] = []
    sent: list[str] = []
    for lsn in range(200):
        new = (dice.randrange(3), dice.choice(["a", "b", None]))
        op = dice.choice("cccuudd" if lsn % 70 else "t")
        old = there.pop(dice.randrange(len(there))) if op in "ud" and there else None
        if op == "t":
            there.clear()
        elif op == "c" or old is None:
            op = "c"
            there.append(new)
        elif op == "u":
            there.append(new)
        after, before = (None if row is None else dict(zip(("n", "note"), row, strict=True)) for row in (new, old))
        sent.append(message(op, lsn, after if op in "cu" else None, before))
        if not dice.randrange(40) or lsn == 199:
            assert Counter(read(*sent)) == Counter(there)
            sent.clear()
            groups = {note: [n for n, other in there if other == note] for _, note in there}
            assert Counter(rows(db, "SELECT * FROM sums")) == Counter((k, len(v), sum(v)) for k, v in groups.items())
    assert (sum(told_of(db, "anomalies")), reasons(db)) == (0, [])


def test_pushed_events_are_read_like_any(db):
    db.sql("CREATE SOURCE things (n INT, note STRING) WITH (changelog = 'debezium')")
    db.insert("things", [envelope("c", 10, ONE), envelope("u", 11, UNO, ONE), envelope("c", 12, ONE)])
    db.run()
    assert rows(db) == [(1, "one"), (1, "uno")]


def test_lost_file_of_rows_with_older_columns_is_found(db, things, spark):
    read = things()
    read(message("c", 10, ONE))
    db.savepoint("before")
    db.sql("ALTER SOURCE things ADD COLUMN size INT DEFAULT 5")
    for kept in db._catalog.manifests(db._engine.source("things").id):
        for name, runs in Manifest.from_json(kept.manifest).traces:
            for run in runs if name.startswith(BAG) else ():
                (Path(db.home) / run.path).unlink()
    found = check_home(db.home, spark=spark)
    assert not found.is_compatible
    assert {check.place for check in found.traces if check.kind is Kind.INCOMPATIBLE} == {"now", "before"}


def test_bag_goes_back_to_a_savepoint_and_leaves_nothing_behind(db, things, spark):
    read = things()
    read(message("c", 10, ONE), message("c", 11, ONE))
    db.savepoint("before")
    read(message("t", 12), message("c", 13, TWO))
    db.sql("ALTER SOURCE things ADD COLUMN size INT DEFAULT 5")
    assert read(message("c", 14, {**TWO, "size": 6})) == [(2, "two", 5), (2, "two", 6)]
    assert check_home(db.home, spark=spark).is_compatible
    # A savepoint does not take columns back.
    first, last = [(1, "one", 5), (1, "one", 5)], rows(db)
    db.restore("before")
    assert rows(db) == first
    db.gc()
    assert rows(db) == first
    # What came since is read once more.
    db.run()
    assert rows(db) == last
    db.gc()
    assert rows(db) == last
    assert (sum(told_of(db, "anomalies")), reasons(db)) == (0, [])


def any_position(dice: random.Random, partitions: str) -> EventPosition:
    return EventPosition(
        dice.choice(partitions) if partitions else "", dice.randrange(3), dice.randrange(3), dice.randrange(6)
    )


def any_progress(dice: random.Random, name: str, partitions: str) -> PartitionProgress:
    newest, cut = (
        replace(any_position(dice, partitions), partition=name) if dice.random() < 0.7 else None
        for _ in ("newest", "cut")
    )
    return PartitionProgress(name, newest, cut)


@pytest.mark.parametrize("partitions", ["", "pq"], ids=["one log", "partitions"])
def test_truncations_are_judged_by_spark_as_by_the_kernel(spark, partitions):
    dice, seen = random.Random(7), set()
    schema = f"{ERROR} STRING, {ROW} STRUCT<n: INT>, {OLD} STRUCT<n: INT>, {EVENT} STRUCT<op: STRING, sequence: BIGINT>"
    fields = (pa.field("c1", pa.int32()),)
    for _ in range(8):
        progress = tuple(any_progress(dice, name, partitions) for name in partitions or [""])
        bag = KeylessTable(
            1, "things", pa.schema([pa.field("n", pa.int32())]), fields, bool(partitions), 0, {}, progress
        )
        places = [any_position(dice, partitions + "r" if partitions else "") for _ in range(60)]
        given = [(None, None, None, (TRUNCATE, at.sequence), at.item, at.offset, at.partition) for at in places]
        frame = spark.createDataFrame(given, f"{schema}, item BIGINT, offset BIGINT, partition STRING")
        told = [error is not None for (error,) in bag.judged(frame).select(ERROR).collect()]
        due = [
            is_late(at, progress) and not is_covered(at, progress) and not is_repeated(at, progress) for at in places
        ]
        assert told == due
        seen.update(due)
    assert seen == {True, False}
