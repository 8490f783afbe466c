"""Changelog files as one table: under one schema, in files of bounded size, equal rows added up. No Spark here."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.engine.retention.changelog_compaction import Piece
from laminae.schema.identity import with_column_ids
from laminae.schema.types import VARIANT
from laminae.spark.views.reading import merge as merging
from laminae.spark.views.reading.merge import merge, merged_schema
from laminae.zset.canonical import canonical

OWN = ("_op", "_weight", "_timestamp")
NAN = float("nan")
VALUES = {
    pa.int8(): (1, None),
    pa.int64(): (2**62, -1, None),
    pa.float32(): (0.5, NAN, None),
    pa.float64(): (0.1, NAN, -math.inf, None),
    pa.bool_(): (True, False, None),
    pa.string(): ("", "ä\0b", None),
    pa.binary(): (b"", b"\xff\0", None),
    pa.decimal128(38, 10): (Decimal("1.5"), Decimal("-99999999999999999999999999.5"), None),
    pa.date32(): (date(1, 1, 1), None),
    pa.timestamp("us"): (datetime(1600, 1, 1, 1), None),
    pa.timestamp("us", "UTC"): (datetime(2026, 1, 1, tzinfo=UTC), None),
    pa.time64("ns"): (time(23, 59, 59, 999999), None),
    pa.duration("us"): (timedelta(days=-1), None),
    pa.null(): (None,),
    pa.list_(pa.struct([("x", pa.int64())])): ([{"x": 1}, None], [], None),
    pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]): ({"x": None, "y": ["a"]}, None),
    pa.map_(pa.string(), pa.float64()): ([("k", NAN)], [], None),
    VARIANT: ({"value": b"\0", "metadata": b"\1"}, None),
}
"""Values of each type that a view can have."""


@pytest.fixture
def small(monkeypatch):
    """Everything in many parts: some rows a batch, a file, a partition."""
    monkeypatch.setattr(merging, "BATCH_ROWS", 4)
    monkeypatch.setattr(merging, "MEMORY_ROWS", 8)
    monkeypatch.setattr(merging, "FILE_BYTES", 200)


def piece(home, number, rows, schema, is_segment=True):
    """`rows` are (values, weight)."""
    own = pa.schema([("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC"))])
    whole = pa.schema([*own, *schema], metadata=schema.metadata)
    found = [{"_weight": weight, **values} for values, weight in rows]
    table = pa.Table.from_pylist(found, whole)
    pq.write_table(table.cast(merging.stored_schema(whole)), home / f"{number}.parquet")
    return Piece(number, number, len(rows), (f"{number}.parquet",), whole, is_segment)


def columns(ids=None, **types):
    return with_column_ids(pa.schema(list(types.items())), ids or {name: name for name in types})


def merged(home, pieces, fills=None, directory="out"):
    schema = merged_schema(pieces[-1].schema, OWN)
    found = merge(home, pieces, schema, fills or {}, home / directory)
    tables = [pq.read_table(home / directory / name) for name in found.files]
    rows = pa.concat_tables([schema.empty_table(), *tables]).to_pylist()
    assert found.rows == len(rows)
    return found, [({name: row[name] for name in row if name != "_weight"}, row["_weight"]) for row in rows]


def summed(rows):
    total = Counter()
    for values, weight in rows:
        total[canonical(values)] += weight
    return {row: weight for row, weight in total.items() if weight}


@pytest.mark.parametrize("is_small", [False, True], ids=["in memory", "by partitions"])
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_rows_of_every_type_are_added_up(tmp_path, kind, is_small, request):
    if is_small:
        request.getfixturevalue("small")
    schema = columns(a=kind, n=pa.int64())
    rows = [({"a": value, "n": n}, 1 + n) for value in VALUES[kind] for n in range(3)]
    back = [({"a": value, "n": 1}, -2) for value in VALUES[kind]]
    pieces = [piece(tmp_path, 1, rows, schema), piece(tmp_path, 2, back, schema), piece(tmp_path, 3, rows, schema)]
    found, result = merged(tmp_path, pieces)
    assert summed(result) == summed([*rows, *back, *rows])
    assert len(result) == len(summed(result))
    assert not found.is_plain


def test_rows_that_were_only_added_are_copied_one_by_one(tmp_path, small):
    rows = [({"a": n % 3}, 1) for n in range(20)]
    pieces = [piece(tmp_path, number, rows, columns(a=pa.int64())) for number in (1, 2)]
    found, result = merged(tmp_path, pieces)
    assert found.is_plain
    assert len(result) == 40
    assert summed(result) == summed(rows * 2)


def test_what_cancels_out_leaves_no_file(tmp_path):
    schema = columns(a=pa.int64())
    pieces = [piece(tmp_path, 1, [({"a": 1}, 1)], schema), piece(tmp_path, 2, [({"a": 1}, -1)], schema)]
    found, result = merged(tmp_path, pieces)
    assert (found.files, result) == ((), [])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("weight", [1, 2], ids=["copied", "added up"])
def test_a_large_table_is_several_files_of_bounded_size_and_nothing_else_is_left(tmp_path, small, weight):
    rows = [({"a": n}, weight) for n in range(200)]
    found, result = merged(tmp_path, [piece(tmp_path, 1, rows, columns(a=pa.int64()))])
    sizes = [pq.read_metadata(tmp_path / "out" / name).num_rows for name in found.files]
    assert len(sizes) > 5
    assert max(sizes) <= 32
    assert summed(result) == summed(rows)
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == list(found.files)


def test_many_small_segments_are_few_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "MEMORY_ROWS", 8)
    schema = columns(a=pa.int64())
    found, result = merged(tmp_path, [piece(tmp_path, number, [({"a": number}, 1)], schema) for number in range(50)])
    assert len(result) == 50
    assert pq.read_metadata(tmp_path / "out" / found.files[0]).num_row_groups == 1


def test_columns_are_matched_by_ids_widened_and_filled(tmp_path):
    """Names were swapped, a column was added with a default, another without, one was dropped."""
    first = columns({"a": "1", "b": "2", "gone": "3"}, a=pa.int32(), b=pa.string(), gone=pa.string())
    last = columns({"b": "1", "a": "2", "c": "4", "d": "5"}, b=pa.int64(), a=pa.string(), c=pa.int64(), d=pa.int64())
    pieces = [
        piece(tmp_path, 1, [({"a": 1, "b": "x", "gone": "y"}, 1)], first),
        piece(tmp_path, 2, [({"b": 1, "a": "x", "c": 7, "d": None}, -1), ({"b": 2, "a": "z", "c": 8}, 1)], last),
    ]
    _, result = merged(tmp_path, pieces, {"4": pa.scalar(7, pa.int32())})
    assert result == [({"b": 2, "a": "z", "c": 8, "d": None}, 1)]


def test_merged_ranges_are_merged_again(tmp_path):
    schema = columns(a=pa.int64())
    _, first = merged(tmp_path, [piece(tmp_path, 1, [({"a": 1}, 2), ({"a": 2}, 1)], schema)])
    kept = Piece(1, 1, 2, ("out/00000.parquet",), merged_schema(schema, OWN), is_segment=False)
    _, result = merged(tmp_path, [kept, piece(tmp_path, 2, [({"a": 1}, -1)], schema)], directory="again")
    assert summed(first) == summed([({"a": 1}, 2), ({"a": 2}, 1)])
    assert summed(result) == summed([({"a": 1}, 1), ({"a": 2}, 1)])
