"""What each strategy of EMIT gives for one stream with rows in time, late within the allowance, and too late.

The stream and the outputs are written out in `emit_strategies.txt` beside this file, so that a person can check them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from laminae.errors import QueryFailed

GOLDEN = Path(__file__).with_name("emit_strategies.txt")
STRATEGIES = ("CHANGES", "ON UPDATE", "ON WATERMARK", "ON WINDOW CLOSE", "FINAL", "EVERY '1' HOUR")
EPOCHS = (
    ((1, "a", 1), (5, "b", 2)),
    ((12, "a", 3),),
    ((3, "a", 4), (25, "a", 5)),
    ((4, "a", 100), (14, "b", 6)),
    ((45, "z", 1),),
)
QUERY = (
    "SELECT window.start AS start, window.end AS end, k, COUNT(*) AS n, SUM(v) AS v FROM t "
    "GROUP BY window(at, '10 seconds'), k"
)


@pytest.fixture
def timed(db):
    db.sql(
        "CREATE SOURCE t (at TIMESTAMP, k STRING, v INT, WATERMARK FOR at AS at - INTERVAL '0' SECOND) "
        "WITH (connector = 'push')"
    )
    return db


def test_every_strategy_emits_what_is_written_in_the_golden_file(timed):
    for number, strategy in enumerate(STRATEGIES):
        options = "WITH (allowed_lateness = '10 seconds')"
        timed.sql(f"CREATE MATERIALIZED VIEW v{number} {options} AS {QUERY} EMIT {strategy}")
    seen = dict.fromkeys(range(len(STRATEGIES)), 0)
    steps: dict[int, list[list[str]]] = {number: [] for number in seen}
    for epoch in EPOCHS:
        timed.insert("t", [{"at": f"2024-01-01T00:00:{at:02}Z", "k": k, "v": v} for at, k, v in epoch])
        timed.run()
        for number in seen:
            found = timed.changes(f"v{number}", seen[number]).fetchall()
            seen[number] = max([seen[number], *(row[0] for row in found)])
            steps[number].append(sorted(map(_line, found), key=lambda line: (line[4:], line[:2])))
    assert _text(steps) == GOLDEN.read_text(encoding="utf-8")
    late = timed.sql("SELECT view_name, window_end, row, weight FROM laminar_catalog.late_rows").fetchall()
    assert {name for name, *_ in late} == {f"v{number}" for number in seen}
    assert {(end.second, row, weight) for _, end, row, weight in late} == {
        (10, '{"at":"2024-01-01T00:00:04.000Z","k":"a","v":100}', 1)
    }
    closed = timed.sql("SELECT second(start), k, n, v FROM v3 ORDER BY start, k").fetchall()
    assert closed == [(0, "a", 2, 5), (0, "b", 1, 2), (10, "a", 1, 3), (10, "b", 1, 6), (20, "a", 1, 5)]


def test_a_view_that_is_made_later_has_the_windows_that_the_watermark_has_passed(timed):
    timed.insert("t", [{"at": f"2024-01-01T00:00:{at:02}Z", "k": "a", "v": 1} for at in (1, 25)])
    timed.run()
    for name, emit in (("changes", "CHANGES"), ("closed", "ON WINDOW CLOSE")):
        timed.sql(f"CREATE MATERIALIZED VIEW {name} AS {QUERY} EMIT {emit}")
    timed.run()
    assert timed.sql("SELECT second(start), n FROM changes ORDER BY start").fetchall() == [(0, 1), (20, 1)]
    assert timed.sql("SELECT second(start), n FROM closed").fetchall() == [(0, 1)]
    assert timed.sql("SELECT * FROM laminar_catalog.late_rows").fetchall() == []


def test_a_strategy_that_a_view_cannot_have_is_refused(timed):
    with pytest.raises(QueryFailed, match="ON WATERMARK needs a window"):
        timed.sql("CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT ON WATERMARK")
    with pytest.raises(QueryFailed, match="ON UPDATE needs a key"):
        timed.sql("CREATE MATERIALIZED VIEW v AS SELECT v FROM t EMIT ON UPDATE")


def _line(row: tuple) -> str:
    _, op, _, time, start, _, k, n, v = row
    return f"{op} [{start.second:02}, {start.second + 10:02}) {k} n={n} v={v} at {time:%S.%f}"[:-3]


def _text(steps: dict[int, list[list[str]]]) -> str:
    made = [
        "Windows of 10 seconds, allowed lateness 10 seconds, watermark = latest time. Each run() is one epoch.",
        "An input is (second, key, value); a change is: operation, window, key, count, sum, event time.",
        "",
    ]
    for number, strategy in enumerate(STRATEGIES):
        made.append(f"EMIT {strategy}")
        for epoch, changes in zip(EPOCHS, steps[number], strict=True):
            made.append(f"  in  {' '.join(f'({at}, {k}, {v})' for at, k, v in epoch)}")
            made += [f"      {change}" for change in changes]
        made.append("")
    return "\n".join(made)
