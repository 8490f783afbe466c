"""The times that windows are of, and windows over columns that hold them."""

from __future__ import annotations

from laminae.views.windows import times_in, with_times

HOP = "WINDOW(FROM_UNIXTIME(a), '10 minutes', '5 minutes')"


def test_the_time_of_each_window_is_found_once():
    assert times_in([f"{HOP}.start", f"{HOP}.end", "a + 1", "window(ts, '1 minute').end"]) == ("FROM_UNIXTIME(a)", "ts")


def test_a_window_is_over_the_column_that_holds_its_time():
    over = with_times(f"{HOP}.start", {"FROM_UNIXTIME(a)": "_time0"})
    assert over == "WINDOW(_time0, '10 minutes', '5 minutes').start"
    assert with_times("window(ts, '1 minute').end", {"FROM_UNIXTIME(a)": "_time0"}) == "WINDOW(ts, '1 minute').end"
