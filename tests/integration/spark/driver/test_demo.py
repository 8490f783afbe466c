"""The demonstration, on the session of the test run."""

import io

from rich.console import Console

from laminae.cli.demo import run_demo


def test_demo_shows_live_changes_a_refusal_a_dead_letter_and_no_restart(spark):
    written = io.StringIO()
    run_demo(Console(file=written, width=120))
    shown = written.getvalue()
    for part in ("INCOMPATIBLE_CHANGE", "id is NULL", "schema_history", "rows in: 9, rows out: 8", "restarts: 0"):
        assert part in shown
    # A sale moved to another shop, and one was cancelled: through both views, the old row before the new one.
    lines = [line.strip() for line in shown.splitlines()]
    moved = lines.index("shops  -U  Bruges  1  5")
    assert lines[moved + 1] == "shops  +U  Bruges  2  25"
    assert "shops  -D  Ghent  1  10" in lines
    assert "sizes  -D  1  1" in lines
