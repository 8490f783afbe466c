"""Which decoders an epoch is planned with: those in force over its range, and those of stamps that come up."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from laminae.catalog.model import SourceRecord, VersionRecord, WriterRecord
from laminae.engine.epochs.epoch_plan import (
    DISABLED_EPOCHS,
    MOST_STAMPS,
    SourceCache,
    in_force,
    pieces,
    plan_epoch,
    refuse_alike,
)
from laminae.engine.epochs.read_strategy import ARROW, ReadStrategy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64())])


def source(version, connector="push"):
    options = (("connector", connector),)
    return SourceRecord(1, "s", version, SCHEMA, 2, options, (), None, None, NOW, 1)


def versions(*positions):
    return [
        VersionRecord(1, number, SCHEMA, "DDL", "NONE", False, None, None, position, NOW)
        for number, position in enumerate(positions, 1)
    ]


def memory_of(*positions, connector="push"):
    memory = SourceCache()
    memory.learn(source(len(positions), connector), lambda _: versions(*positions))
    return memory


def decoders(memory, items, connector="push"):
    return [d.version for d in memory.table(source(len(memory.versions), connector), items).decoders]


def test_unstamped_records_need_the_versions_in_force_over_their_range_alone():
    memory = memory_of("0", "10", "20", "30", connector="files")
    assert decoders(memory, range(12, 15), "files") == [2]
    assert decoders(memory, range(12, 21), "files") == [2, 3]
    assert decoders(memory, range(20, 21), "files") == [3]


def test_a_version_without_a_place_holds_from_the_first_item():
    memory = memory_of("0", None, None, connector="files")
    assert decoders(memory, range(7, 9), "files") == [3]
    plan = plan_epoch(source(3, "files"), memory, (), 0, ("a", "b"), range(7, 9))
    assert [(place.version, place.position) for place in plan.positions] == [(2, "7"), (3, "7")]


def test_a_stamped_log_is_read_with_the_newest_version_too():
    assert decoders(memory_of("0", "10"), range(5)) == [1, 2]


def test_stamps_that_came_up_are_decoded_in_the_epochs_that_follow():
    memory = memory_of("0", "10", "20")
    assert decoders(memory, range(20, 21)) == [3]
    assert memory.meet([1])
    assert decoders(memory, range(20, 21)) == [1, 3]
    assert not memory.meet([1])


def test_a_stamp_that_names_no_version_is_not_remembered():
    memory = memory_of("0")
    assert not memory.meet([0, 2, 99, -1])


def test_only_the_last_stamps_are_remembered_for_the_next_epoch():
    memory = memory_of(*(str(number) for number in range(MOST_STAMPS + 5)))
    memory.meet(range(1, MOST_STAMPS + 4))
    assert len(memory.stamps) == MOST_STAMPS + 3
    memory.settle()
    assert len(memory.stamps) == MOST_STAMPS
    assert 1 not in memory.stamps


def test_the_same_table_object_serves_every_epoch_until_something_changes():
    memory = memory_of("0", "10")
    first = memory.table(source(2), range(10, 11))
    assert memory.table(source(2), range(11, 14)) is first
    memory.meet([1])
    assert memory.table(source(2), range(14, 15)) is not first


def test_placed_versions_are_not_read_again():
    memory = memory_of("0", "10")

    def unexpected(_):
        pytest.fail("the versions were read again")

    memory.learn(source(2), unexpected)


def test_a_version_that_had_no_place_and_a_new_one_are_read_again():
    memory = memory_of("0", None)
    memory.learn(source(2), lambda _: versions("0", "4"))
    assert memory.versions[-1].position == "4"
    memory.learn(source(3), lambda _: versions("0", "4", None))
    assert len(memory.versions) == 3


def test_a_disabled_strategy_stays_so_for_some_epochs():
    memory = memory_of("0")
    assert memory.disabled(3) == frozenset()
    memory.disable(3, ReadStrategy.ARROW_SHORT_LINES, only_long=True)
    assert memory.disabled(3) == {ReadStrategy.ARROW_SHORT_LINES}
    memory.disable(3, ReadStrategy.ARROW_LINES)
    memory.disable(4, ReadStrategy.FAST_PLAN)
    assert memory.disabled(3 + DISABLED_EPOCHS) == {*ARROW, ReadStrategy.FAST_PLAN}
    assert memory.disabled(4 + DISABLED_EPOCHS) == {ReadStrategy.FAST_PLAN}
    assert memory.disabled(5 + DISABLED_EPOCHS) == frozenset()


def test_what_is_odd_among_short_records_is_not_tried_as_a_long_one():
    memory = memory_of("0")
    memory.disable(3, ReadStrategy.ARROW_SHORT_LINES)
    assert memory.disabled(3 + DISABLED_EPOCHS) == set(ARROW)
    assert memory.disabled(4 + DISABLED_EPOCHS) == frozenset()


def test_a_copy_of_the_cache_learns_on_its_own():
    memory = memory_of("0")
    copy = memory.copy()
    copy.disable(0, ReadStrategy.FAST_PLAN)
    copy.meet([1])
    assert (memory.disabled(0), memory.stamps) == (frozenset(), ())


def test_a_re_read_is_cut_where_too_many_versions_would_hold_at_once():
    many = versions(*(str(10 * number) for number in range(2 * MOST_STAMPS + 1)))
    parts = pieces(many, range(10 * (2 * MOST_STAMPS + 1)))
    assert [(part.start, part.stop) for part in parts] == [(0, 80), (80, 160), (160, 170)]
    assert all(len(in_force(many, part)) <= MOST_STAMPS for part in parts)


def test_versions_that_took_each_others_place_need_no_cut():
    idle = versions(*["0"] * 100)
    assert pieces(idle, range(5)) == [range(5)]
    assert in_force(idle, range(5)) == {100}


def test_a_re_read_of_nothing_is_one_empty_range():
    assert pieces(versions("0"), range(0)) == [range(0)]


def schema_of(*columns):
    return pa.schema(
        [pa.field(name, kind, nullable, {"laminae:id": str(number)}) for number, name, kind, nullable in columns]
    )


def test_versions_that_differ_in_optional_columns_refuse_alike():
    old = schema_of((1, "a", pa.int64(), False), (2, "b", pa.string(), True))
    assert refuse_alike(old, schema_of((1, "renamed", pa.int64(), False), (3, "c", pa.string(), True)))


@pytest.mark.parametrize(
    "other",
    [
        schema_of((1, "a", pa.int64(), True)),
        schema_of((1, "a", pa.int32(), False)),
        schema_of((1, "a", pa.int64(), False), (2, "b", pa.string(), False)),
    ],
    ids=["laxer", "another type", "stricter"],
)
def test_versions_that_differ_in_what_they_demand_do_not_refuse_alike(other):
    assert not refuse_alike(schema_of((1, "a", pa.int64(), False)), other)


def test_stamps_that_are_known_ahead_have_their_decoders_in_the_first_plan():
    memory = memory_of("0", "1", "2", "3", "4")
    plan = plan_epoch(source(5), memory, (), 0, ("a", "b"), range(7, 9), stamps={2, 4})
    assert [decoder.version for decoder in plan.table.decoders] == [2, 4, 5]
    assert memory.stamps == ()


def framed(definition_seq=1):
    options = (("connector", "kafka"), ("format", "avro"), ("registry", "http://127.0.0.1:1"))
    return SourceRecord(1, "s", 1, SCHEMA, 2, options, (), None, None, NOW, definition_seq)


def schema_ids(memory):
    return [writer.schema_id for writer in memory.table(framed(), range(1)).writers]


def test_a_new_schema_id_is_planned_with_those_of_its_epoch_and_others_come_back_when_they_are_met():
    known = [WriterRecord(1, number, 0, number, True, None, "", SCHEMA) for number in range(1, 5)]
    memory = memory_of("0", connector="kafka")
    memory.learn_writers(framed(), lambda _: known[:3])
    assert schema_ids(memory) == [1, 2, 3]
    memory.meet_writer(framed(), 4)
    memory.learn_writers(framed(), lambda _: known)
    memory.keep_to({2, 4})
    assert schema_ids(memory) == [2, 4]
    memory.meet_writer(framed(), 1)
    memory.learn_writers(framed(), lambda _: known)
    assert schema_ids(memory) == [2, 4, 1]
