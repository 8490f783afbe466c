"""Whole changelogs as Debezium messages."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from laminae.errors import SchemaMismatch
from laminae.zset.debezium.envelope import CdcEnvelope, CdcSource
from laminae.zset.debezium.messages import encode_changelog

SOURCE = CdcSource("laminae", "default", "totals", 7)


def changelog(*rows):
    """Rows of (op, weight, id, value)."""
    ops, weights, ids, values = zip(*rows, strict=True)
    return pa.table(
        {
            "_op": ops,
            "_weight": weights,
            "_timestamp": [1000] * len(rows),
            "id": ids,
            "v": pa.array(values, pa.string()),
        }
    )


def told(table, **options):
    """Each message as (op, value before, value after), a tombstone as its key."""
    messages, found = encode_changelog(table, SOURCE, **options), []
    for key, value in zip(messages.keys.to_pylist(), messages.values.to_pylist(), strict=True):
        if value is None:
            found.append(key)
            continue
        event = json.loads(value)
        found.append((event["op"], *((event.get(name) or {}).get("v") for name in ("before", "after"))))
    return found


def test_inserts_updates_and_deletes():
    table = changelog(("+I", 1, 1, "a"), ("-U", -1, 1, "a"), ("+U", 1, 1, "b"), ("-D", -1, 1, "b"))
    assert told(table) == [("c", None, "a"), ("u", "a", "b"), ("d", "b", None)]


def test_the_text_of_an_event_is_that_of_its_envelope():
    table = changelog(("-U", -1, 1, 'quote " and \\ and \n'), ("+U", 1, 1, "ü"))
    (text,) = encode_changelog(table, SOURCE).values.to_pylist()
    before, after = {"id": 1, "v": 'quote " and \\ and \n'}, {"id": 1, "v": "ü"}
    assert text == CdcEnvelope.update(before, after, SOURCE, 1000).to_json()


def test_an_update_without_its_other_half():
    assert told(changelog(("-U", -1, 1, "a"), ("-U", -1, 2, "b"), ("+U", 1, 2, "c"))) == [
        ("d", "a", None),
        ("u", "b", "c"),
    ]
    assert told(changelog(("+U", 1, 1, "a"))) == [("u", None, "a")]
    assert told(changelog(("-U", -2, 1, "a"), ("+U", 1, 1, "b"))) == [
        ("d", "a", None),
        ("d", "a", None),
        ("u", None, "b"),
    ]


def test_an_update_that_moves_to_another_key_is_a_delete_and_a_create():
    table = changelog(("-U", -1, 1, "a"), ("+U", 1, 2, "a"))
    assert told(table, key=["id"]) == [("d", "a", None), ("c", None, "a")]
    assert told(table) == [("u", "a", "a")]


def test_several_copies_are_several_events_and_weight_zero_none():
    table = changelog(("+I", 3, 1, "a"), ("+I", 0, 2, "x"), ("-U", -2, 1, "a"), ("+U", 2, 1, "b"), ("-D", -2, 3, "c"))
    assert told(table) == [("c", None, "a")] * 3 + [("u", "a", "b")] * 2 + [("d", "c", None)] * 2


def test_messages_have_keys_and_a_delete_its_tombstone():
    table = changelog(("+I", 1, 1, "a"), ("-D", -1, 2, "b"), ("-U", -1, 3, "c"))
    assert encode_changelog(table, SOURCE, key=["id"]).keys.to_pylist() == ['{"id":1}', '{"id":2}', '{"id":3}']
    found = told(table, key=["id"], tombstones=True)
    assert found == [("c", None, "a"), ("d", "b", None), '{"id":2}', ("d", "c", None), '{"id":3}']


def test_missing_images_are_written_as_null_on_demand():
    (text,) = encode_changelog(changelog(("+I", 1, 1, "a")), SOURCE, nulls="explicit").values.to_pylist()
    assert '"before":null,"after":{' in text


def test_times_come_from_the_changelog_or_from_the_caller():
    table = changelog(("+I", 1, 1, "a")).drop_columns(["_timestamp"])
    at = pa.array([datetime(1970, 1, 1, 0, 0, 2, 999, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert '"ts_ms":2000}' in encode_changelog(table.append_column("_timestamp", at), SOURCE).values[0].as_py()
    assert '"ts_ms":77}' in encode_changelog(table, SOURCE, ts_ms=77).values[0].as_py()
    with pytest.raises(SchemaMismatch, match="_timestamp"):
        encode_changelog(table, SOURCE)
    with pytest.raises(SchemaMismatch, match="NULL in places"):
        encode_changelog(table.append_column("_timestamp", pa.nulls(1, pa.int64())), SOURCE)


def test_values_of_every_type_are_written_as_one_by_one():
    row = {
        "i": -(2**63),
        "b": True,
        "f": 0.1,
        "one": 1.0,
        "nan": math.nan,
        "inf": -math.inf,
        "d": Decimal("0.00000001"),
        "at": datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "local": datetime(2024, 1, 2, 3, 4, 5),
        "day": date(2024, 1, 2),
        "bytes": b"\x00\xff",
        "list": [1.5, None],
        "row": {"x": [Decimal("1.50")], "y": None},
        "none": None,
        'na"me': "",
    }
    rows = [row, dict.fromkeys(row)]
    table = pa.Table.from_pylist(rows).append_column("_op", pa.array(["+I", "+I"]))
    table = table.set_column(table.column_names.index("at"), "at", table["at"].cast(pa.timestamp("us", "UTC")))
    found = encode_changelog(table, SOURCE, ts_ms=5).values.to_pylist()
    assert found == [CdcEnvelope.insert(given, SOURCE, 5).to_json() for given in rows]


def test_maps_are_objects():
    kind = pa.map_(pa.string(), pa.decimal128(3, 1))
    table = pa.table({"m": pa.array([[("k", Decimal("1.5"))]], kind), "_op": ["+I"]})
    assert '"after":{"m":{"k":"1.5"}}' in encode_changelog(table, SOURCE, ts_ms=5).values[0].as_py()


def test_no_rows_and_no_columns():
    table = changelog(("+I", 1, 1, "a"))
    assert len(encode_changelog(table[:0], SOURCE).values) == 0
    assert len(encode_changelog(table[:0], SOURCE, key=["id"], tombstones=True).values) == 0
    (text,) = encode_changelog(pa.table({"_weight": [1]}), SOURCE, ts_ms=1).values.to_pylist()
    assert json.loads(text)["after"] == {}


def test_a_tombstone_needs_a_key_and_a_key_its_columns():
    with pytest.raises(ValueError, match="message key"):
        encode_changelog(changelog(("+I", 1, 1, "a")), SOURCE, tombstones=True)
    with pytest.raises(SchemaMismatch, match="nope"):
        encode_changelog(changelog(("+I", 1, 1, "a")), SOURCE, key=["nope"])
