"""Which neighbours of a changelog are merged, and what is read of it then."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from math import log2

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminae.catalog.model import CompactedRecord
from laminae.engine.retention.changelog_compaction import (
    LEAST_SEGMENTS,
    Coverage,
    Limits,
    Piece,
    fits,
    largest_ranges,
    next_merge,
)
from laminae.schema.identity import with_column_ids

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = with_column_ids(pa.schema([("a", pa.int64())]), {"a": "a"})


def segment(epoch, rows=1, schema=SCHEMA):
    return Piece(epoch, epoch, rows, ("f",), schema, is_segment=True)


def merged(first, last, rows, schema=SCHEMA):
    return Piece(first, last, rows, ("f",), schema, is_segment=False)


def record(first, last):
    return CompactedRecord(first, last, ("f",), 1, True, NOON, SCHEMA)


def segments(first, last):
    return [segment(epoch) for epoch in range(first, last + 1)]


def planned(pieces, limits=Limits(), due=0):  # noqa: B008  # frozen
    found = next_merge(pieces, limits, due)
    return (found[0].first, found[-1].last) if found else None


def test_few_segments_are_left_as_they_are_and_many_are_merged():
    assert planned(segments(1, LEAST_SEGMENTS - 1)) is None
    assert planned(segments(1, LEAST_SEGMENTS)) == (1, LEAST_SEGMENTS)


def test_a_range_is_merged_with_as_many_rows_behind_it_and_one_that_is_larger_is_not():
    assert planned([merged(1, 99, 32), *segments(100, 131)]) == (1, 131)
    assert planned([merged(1, 99, 33), *segments(100, 131)]) == (100, 131)
    assert planned([merged(1, 9, 10), merged(10, 19, 6), merged(20, 29, 4), segment(30)]) is None
    assert planned([merged(1, 9, 10), merged(10, 19, 6), merged(20, 29, 6)]) == (1, 29)


def test_a_large_segment_between_ranges_is_merged_as_they_are():
    assert planned([segment(1, 40), merged(2, 39, 39), *segments(40, 50)]) is None
    assert planned([segment(1, 40), merged(2, 39, 39), merged(40, 70, 30)]) is None
    assert planned([segment(1, 40), merged(2, 39, 25), merged(40, 70, 30)]) == (1, 70)
    assert planned([merged(1, 9, 10), segment(10, 40), *segments(11, 11 + LEAST_SEGMENTS)]) == (1, 11 + LEAST_SEGMENTS)
    assert planned([merged(1, 9, 10), segment(10, 40), merged(11, 19, 7)]) == (1, 10)
    assert planned([merged(1, 99, 1000), segment(100, 5), segment(101, 5), merged(102, 110, 4)]) == (100, 101)


def test_what_retention_wants_to_go_is_merged_however_little_it_is():
    assert planned(segments(1, 1), due=1) == (1, 1)
    assert planned([merged(1, 9, 100), segment(10), segment(11)], due=10) == (10, 11)
    assert planned([merged(1, 9, 100), segment(10)], due=9) is None


@pytest.mark.parametrize(
    "between",
    [
        replace(segment(50), files=()),
        segment(50, schema=pa.schema([("a", pa.int64())])),
        segment(50, schema=with_column_ids(pa.schema([("a", pa.string())]), {"a": "a"})),
    ],
    ids=["its rows are gone", "its columns have no ids", "its column has another type"],
)
def test_no_merge_crosses_an_epoch_that_cannot_be_part_of_it(between):
    before, behind = segments(1, 49), segments(51, 99)
    found, pieces = [], [*before, between, *behind]
    while merge := next_merge(pieces):
        found.append((merge[0].first, merge[-1].last))
        pieces = after(pieces, merge)
    assert sorted(found) == [(1, 49), (51, 99)]
    assert between in pieces


def test_a_driver_merges_no_more_than_it_may_and_goes_past_what_is_too_large():
    few = Limits(rows=100, files=40)
    assert planned(segments(1, 99), few) == (1, 40)
    assert planned([segment(1, rows=101), *segments(2, 40)], few) == (2, 40)
    assert planned([merged(1, 9, 70), *segments(10, 49)], few) == (10, 49)
    assert planned([*segments(1, 2), segment(3, rows=101), segment(4)], few) == (1, 2)


@pytest.mark.parametrize(
    ("old", "new", "is_one"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.float32(), pa.float64(), True),
        (pa.decimal128(10, 2), pa.decimal128(12, 2), True),
        (pa.decimal128(10, 2), pa.decimal128(12, 3), False),
        (pa.int64(), pa.float64(), False),
        (pa.struct([("x", pa.int64())]), pa.struct([("x", pa.int64())]), True),
        (pa.struct([("x", pa.int64())]), pa.struct([("y", pa.int64())]), False),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int64())]), False),
    ],
    ids=str,
)
def test_values_are_written_under_another_type_only_if_they_stay_what_they_are(old, new, is_one):
    schemas = [with_column_ids(pa.schema([("a", kind)]), {"a": "1"}) for kind in (old, new)]
    assert fits(*schemas) is is_one


def test_columns_are_compared_by_their_ids():
    old = with_column_ids(pa.schema([("a", pa.int64()), ("b", pa.string())]), {"a": "1", "b": "2"})
    new = with_column_ids(pa.schema([("b", pa.int64()), ("c", pa.binary())]), {"b": "1", "c": "3"})
    assert fits(old, new)


def after(pieces, merge):
    """The changelog with these pieces as one; nothing of them cancels out."""
    place = pieces.index(merge[0])
    one = merged(merge[0].first, merge[-1].last, sum(each.rows for each in merge))
    return [*pieces[:place], one, *pieces[place + len(merge) :]]


@given(st.lists(st.sampled_from([1, 1, 1, 2, 50, 1000]), max_size=300))
def test_what_a_driver_left_is_merged_by_a_collection(sizes):
    pieces = []
    for epoch, rows in enumerate(sizes, 1):
        pieces.append(segment(epoch, rows))
        while merge := next_merge(pieces, Limits(rows=100, files=40)):
            pieces = after(pieces, merge)
    while merge := next_merge(pieces):
        pieces = after(pieces, merge)
    assert sum(each.rows for each in pieces) == sum(sizes)
    assert len(pieces) < LEAST_SEGMENTS + log2(sum(sizes) + 1) + 1


@given(st.lists(st.integers(1, 1000), max_size=300))
def test_a_row_is_rewritten_and_a_select_opens_files_no_more_than_log_n_times(sizes):
    pieces, rewritten, most = [], [0] * (len(sizes) + 1), 0
    for epoch, rows in enumerate(sizes, 1):
        pieces.append(segment(epoch, rows))
        while merge := next_merge(pieces):
            for each in range(merge[0].first, merge[-1].last + 1):
                rewritten[each] += 1
            pieces = after(pieces, merge)
        most = max(most, len(pieces))
    bound = log2(sum(sizes) + 1) + 1
    assert max(rewritten) <= bound
    assert most < LEAST_SEGMENTS + bound
    assert all(one.last < other.first for one, other in pairwise(pieces))


def test_the_largest_ranges_up_to_an_epoch_are_read():
    known = [record(1, 4), record(5, 6), record(1, 8), record(9, 9), record(1, 20)]
    found = {until: [(each.first, each.last) for each in largest_ranges(known, until)] for until in (3, 6, 12, None)}
    assert found == {3: [], 6: [(1, 4), (5, 6)], 12: [(1, 8), (9, 9)], None: [(1, 20)]}


def test_what_somebody_reads_as_of_an_epoch_is_read():
    known = [record(1, 4), record(5, 6), record(1, 8)]
    now, then = Coverage.at(known, ()), Coverage.at(known, [5])
    assert [now.reads_range(each) for each in known] == [False, False, True]
    assert [then.reads_range(each) for each in known] == [True, False, True]
    assert [now.reads_segment(epoch) for epoch in (4, 5, 9)] == [False, False, True]
    assert [then.reads_segment(epoch) for epoch in (4, 5, 9)] == [False, True, True]
