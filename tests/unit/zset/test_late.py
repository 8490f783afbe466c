"""Late data: corrected within the lateness, set aside and counted beyond it."""

import math

import pytest

from laminae.zset.library.late import LateDataRetractionGenerator, LateRow, RetractionKey, WindowId
from laminae.zset.outcome import Delete, Insert, NoChange, Update

WINDOW = WindowId(start=0, end=60000)
KEY = RetractionKey("totals", WINDOW, "eu")


def test_late_data_retraction_generation():
    generator = LateDataRetractionGenerator(True)
    assert generator.check_retraction(WINDOW, b"count=5", 1000) is None
    assert generator.check_retraction(WINDOW, b"count=7", 2000) == (b"count=5", b"count=7")
    assert generator.check_retraction(WINDOW, b"count=7", 3000) is None


def test_the_outcome_is_one_of_four():
    generator = LateDataRetractionGenerator()
    assert generator.check(KEY, None, 0) == NoChange()
    assert generator.check(KEY, {"n": 5}, 1) == Insert({"n": 5})
    assert generator.check(KEY, {"n": 5}, 2) == NoChange()
    assert generator.check(KEY, {"n": 7}, 3) == Update({"n": 5}, {"n": 7})
    assert generator.check(KEY, None, 4) == Delete({"n": 7})
    assert generator.check(KEY, {"n": 1}, 5) == Insert({"n": 1})


def test_operators_windows_and_groups_do_not_correct_one_another():
    generator = LateDataRetractionGenerator()
    keys = [KEY, KEY._replace(operator="other"), KEY._replace(window=WindowId(60000, 120000)), KEY._replace(group="us")]
    assert [generator.check(key, i, 0) for i, key in enumerate(keys)] == [Insert(i) for i in range(4)]
    assert len(generator) == 4


def test_a_correction_carries_the_time_of_its_window():
    generator = LateDataRetractionGenerator()
    generator.corrections(KEY, "old", 61_000)
    found = generator.corrections(KEY, "new", 75_000)
    assert [(record.operation.value, record.data, record.timestamp) for record in found] == [
        ("-U", "old", 59_999),
        ("+U", "new", 59_999),
    ]
    (gone,) = generator.corrections(KEY, None, 80_000)
    assert (gone.operation.value, gone.data, gone.timestamp) == ("-D", "new", 59_999)
    assert generator.corrections(KEY, None, 90_000) == ()


def test_emissions_are_counted_with_their_time():
    generator = LateDataRetractionGenerator()
    for time, data in enumerate(["a", "a", "b"]):
        generator.check(KEY, data, time)
    known = generator.emitted(KEY)
    assert (known.data, known.emit_time, known.version) == ("b", 2, 2)


def test_state_is_kept_to_the_end_of_the_window_and_the_lateness():
    generator = LateDataRetractionGenerator(allowed_lateness=10_000)
    generator.check(KEY, 1, 0)
    assert generator.advance(69_999) == ()
    assert generator.check(KEY, 2, 0) == Update(1, 2)
    assert generator.advance(70_000) == (WINDOW,)
    assert len(generator) == 0


def test_a_result_for_a_closed_window_is_set_aside_not_inserted_again():
    generator = LateDataRetractionGenerator()
    generator.check(KEY, 1, 0)
    generator.advance(60_000)
    assert generator.check(KEY, 2, 0) == NoChange()
    assert generator.check(KEY, None, 0) == NoChange()
    assert generator.late_count == 1
    assert generator.drain_late() == [LateRow(2, (WINDOW,), 60_000)]


def test_a_row_is_late_only_when_all_its_windows_are_closed():
    generator, later = LateDataRetractionGenerator(), WindowId(30_000, 90_000)
    assert generator.admit("early", [WINDOW, later]) == (WINDOW, later)
    generator.advance(60_000)
    assert generator.admit("half", [WINDOW, later]) == (later,)
    generator.advance(90_000)
    assert generator.admit("late", [WINDOW, later]) == ()
    assert generator.drain_late() == [LateRow("late", (WINDOW, later), 90_000)]
    assert generator.drain_late() == []
    assert generator.late_count == 1


def test_a_row_without_a_window_is_never_late():
    generator = LateDataRetractionGenerator()
    generator.advance(10**15)
    assert generator.admit("row", []) == ()
    assert generator.late_count == 0


def test_the_watermark_never_goes_back():
    generator = LateDataRetractionGenerator()
    generator.advance(60_000)
    generator.advance(1)
    assert generator.is_closed(WINDOW)


def test_a_cleaned_window_starts_anew():
    generator = LateDataRetractionGenerator()
    generator.check(KEY, 1, 0)
    generator.cleanup_window(WINDOW)
    assert generator.check(KEY, 2, 0) == Insert(2)


def test_disabled_it_never_corrects():
    generator = LateDataRetractionGenerator(enabled=False)
    assert generator.check_retraction(WINDOW, b"a", 0) is None
    assert generator.check_retraction(WINDOW, b"b", 0) is None
    assert len(generator) == 0


def test_equal_as_sql_has_it_is_no_change():
    generator = LateDataRetractionGenerator()
    generator.check(KEY, {"x": math.nan, "y": 0.0}, 0)
    assert generator.check(KEY, {"x": math.nan, "y": -0.0}, 0) == NoChange()


def test_a_negative_lateness_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        LateDataRetractionGenerator(True, -1)
