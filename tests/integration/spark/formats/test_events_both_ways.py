"""Events by Arrow and by the decoder of single events: whatever the one takes, the other reads just so."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.codec.debezium.json_lines import event_reader
from laminae.codec.decoders import Decoder, DecoderTable
from laminae.codec.value_encodings import by_looks
from laminae.spark.formats.debezium.events import EVENT, MOVES
from laminae.spark.formats.debezium.format import DebeziumFormat
from laminae.spark.formats.protocol import ERROR, PLACED, RAW_SCHEMA, ROW, SHORT_BYTES, UNKNOWN
from tests.support.debezium_events import message
from tests.unit.codec.test_event_lines import ODD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("ok", pa.bool_()),
        pa.field("x", pa.float64()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("day", pa.date32()),
    ]
)
SENT = by_looks(COLUMNS, "micros", "text")
TEXTS = ["", "a", "größe", 'q"uo,"after":te', "\\", "\t\n", "\u2028", "null", "\U0001f600", ',"source":{', None]
PIECES = [
    *'{}[]":,\\ \n0123456789.eE+-',
    '"op":"c"',
    '"id":1',
    "null",
    "true",
    "NaN",
    "-0",
    "1e5",
    '"name":',
    "\x00",
    "ä",
]


def any_row(dice: random.Random) -> dict[str, object]:
    whole = {
        "id": dice.choice([0, 1, -5, 2**63 - 1, -(2**63)]),
        "name": dice.choice(TEXTS),
        "n": dice.choice([None, 0, 2**31 - 1, -(2**31)]),
        "ok": dice.choice([None, True, False]),
        "x": dice.choice([None, 0, 1.5, -2e300, 1e-320, 0.1, 3]),
        "at": dice.choice([None, 0, -1, 1_700_000_000_123_456, -62_135_596_800_000_000, 253_402_300_799_000_000]),
        "local": dice.choice([None, 0, -1, 1_700_000_000_123_456]),
        "day": dice.choice([None, 0, -1, 20_000, -719_162, 2_932_896]),
    }
    return {name: value for name, value in whole.items() if name == "id" or dice.random() < 0.9}


def any_message(dice: random.Random) -> bytes:
    op, row = dice.choice("crud"), any_row(dice)
    before = row if op == "d" else dice.choice([None, any_row(dice)])
    text = message(op, dice.choice([0, 7, 10**15]), None if op == "d" else row, before=before)
    for _ in range(dice.choice([0, 0, 1, 2])):
        place = dice.randrange(len(text))
        text = text[:place] + dice.choice(PIECES) + text[place + dice.choice([0, 1]) :]
    return text.encode()


def taken(found: pa.Table) -> list[tuple[object, ...]]:
    return [(row["op"], row["place"], tuple(row["row"].values())) for row in found.to_pylist()]


@dataclass
class Letters:
    """Stands for the records of a range: what is read of them is given."""

    records: DataFrame

    def frame(self, columns: tuple[str, ...]) -> DataFrame:
        return self.records


def test_records_that_say_nothing_of_a_move_have_none(spark: SparkSession):
    given = [(None, message("c", 1, {"id": 1}).encode(), "p", 0, 0, None, None)]
    records = spark.createDataFrame(given, RAW_SCHEMA).withColumn(MOVES, F.lit(None).cast("boolean"))
    events = DebeziumFormat("source.lsn", ("id",))
    table = DecoderTable((Decoder(1, SENT, 0),), COLUMNS, has_stamps=False, event_order="source.lsn")
    quick = events.arrow_rows(Letters(records), table, are_short=False)
    assert quick is not None
    (row,) = quick.frame().collect()
    (careful,) = events.decoded_again(records, table, None).records.collect()
    assert (row[PLACED][EVENT], row[PLACED][ROW]) == (careful[EVENT], careful[ROW])
    assert row[PLACED][EVENT].moves is False
    assert (quick.count(), quick.refused()) == (1, False)


@pytest.mark.parametrize(("stamps", "is_refused"), [([None, 1], False), ([1, 99], True)])
def test_a_stamp_of_another_version_needs_a_closer_look(spark: SparkSession, stamps, is_refused):
    text = message("c", 1, {"id": 1}).encode()
    given = [(None, text, "p", at, 0, None, stamp) for at, stamp in enumerate(stamps)]
    events, letters = DebeziumFormat("source.lsn", ("id",)), Letters(spark.createDataFrame(given, RAW_SCHEMA))
    table = DecoderTable((Decoder(1, SENT, 0),), COLUMNS, event_order="source.lsn")
    quick = events.arrow_rows(letters, table, are_short=False)
    assert quick is not None
    quick.frame().collect()
    assert (quick.refused(), quick.only_long()) == (is_refused, False)


@pytest.mark.parametrize(("length", "is_refused"), [(SHORT_BYTES, False), (SHORT_BYTES + 1, True)])
@pytest.mark.parametrize("stamp", [None, 1])
def test_only_among_short_records_a_long_one_needs_a_closer_look(spark: SparkSession, length, is_refused, stamp):
    bare = message("c", 1, {"id": 1, "name": ""})
    text = message("c", 1, {"id": 1, "name": "x" * (length - len(bare))}).encode()
    assert len(text) == length
    given = [(None, each, "p", at, 0, None, stamp) for at, each in enumerate([bare.encode(), text, None])]
    events, letters = DebeziumFormat("source.lsn", ("id",)), Letters(spark.createDataFrame(given, RAW_SCHEMA))
    table = DecoderTable((Decoder(1, SENT, 0),), COLUMNS, event_order="source.lsn")
    for are_short in (True, False):
        quick = events.arrow_rows(letters, table, are_short)
        assert quick is not None
        rows = quick.frame().collect()
        assert (quick.are_short, quick.refused()) == (are_short, is_refused and are_short)
        assert quick.only_long() is quick.refused()
        if not quick.refused():
            assert [len(row["name"] or "") for row in rows] == [0, length - len(bare), 0]
            assert [row[PLACED][EVENT].op for row in rows] == ["c", "c", "tombstone"]


@pytest.mark.parametrize("seed", range(3))
def test_what_arrow_takes_the_decoder_reads_just_so(spark: SparkSession, seed: int):
    dice = random.Random(seed)
    messages = [any_message(dice) for _ in range(700)]
    messages += [each if isinstance(each, bytes) else each.encode() for each in ODD.values()]
    reader = event_reader(SENT, ["id"], "source.lsn")
    assert reader is not None
    alone = {at: reader.read(pa.array([each], pa.binary())) for at, each in enumerate(messages)}
    found = {at: taken(table)[0] for at, table in alone.items() if table is not None}
    assert len(found) > 200, "else this test says little"
    table = DecoderTable((Decoder(1, SENT, 0),), COLUMNS, finds_unknown_fields=True, event_order="source.lsn")
    letters = [(None, each, "p", at, 0, None, None) for at, each in enumerate(messages)]
    events = DebeziumFormat("source.lsn", ("id",))
    records = events.decoded_again(spark.createDataFrame(letters, RAW_SCHEMA), table, None).records
    read = records.where(F.col("offset").isin(list(found))).select("offset", ROW, ERROR, UNKNOWN, EVENT)
    rows = {row["offset"]: row for row in read.toArrow().to_pylist()}
    for at, (op, place, values) in found.items():
        row = rows[at]
        assert (row[ERROR], row[UNKNOWN]) == (None, False), messages[at]
        assert (row[EVENT]["op"], row[EVENT]["sequence"]) == (op, place), messages[at]
        assert tuple(row[ROW].values()) == values, messages[at]
    # Many at once are as each of them alone.
    whole = reader.read(pa.array([messages[at] for at in found], pa.binary()))
    assert whole is not None
    assert taken(whole) == list(found.values())
