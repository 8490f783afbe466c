"""The watch command: it prints what is committed, as text and as JSON lines, and ends orderly."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.catalog.updates import AdvanceOwner, NextEpoch, SetViewState
from laminae.cli import main
from laminae.cli import watch as watching

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC")), ("n", pa.int64())]
)


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINAE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    with lm.connect(str(tmp_path / "home")) as found:
        found.sql("CREATE SOURCE orders (id BIGINT)")
        found.sql("CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM orders")
        found._catalog.commit([SetViewState(found._engine.view("counted").id, "live")])
        yield found


def commit(db, tmp_path, *changes, collected=False):
    """An epoch with these changes of the view; the number it got."""
    view, catalog = db._engine.view("counted"), db._catalog
    last = catalog.last_advance(view.id)
    file = f"changes-{last}.parquet"
    rows = [{"_op": op, "_weight": 1 if op[0] == "+" else -1, "_timestamp": NOON, "n": n} for op, n in changes]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), tmp_path / "home" / file)
    files = (file,) if changes and not collected else ()
    catalog.commit([NextEpoch(), AdvanceOwner(view.id, view.name, last, (), files, len(rows), SCHEMA)])
    return catalog.last_advance(view.id)


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["laminae", "watch", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return call


def test_once_prints_what_is_there(db, tmp_path, run):
    first = commit(db, tmp_path, ("+I", 1))
    second = commit(db, tmp_path, ("-U", 1), ("+U", 2))
    code, out, _ = run("counted", "--once")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        [str(first), "+I", "n=1"],
        [str(second), "-U", "n=1"],
        [str(second), "+U", "n=2"],
    ]
    code, out, _ = run("counted", "--once", "--json", "--since", str(first))
    assert [json.loads(line) for line in out.splitlines()] == [
        {"_epoch": second, "_op": "-U", "_weight": -1, "_timestamp": "2026-03-01T12:00:00+00:00", "n": 1},
        {"_epoch": second, "_op": "+U", "_weight": 1, "_timestamp": "2026-03-01T12:00:00+00:00", "n": 2},
    ]


def test_once_without_any_change_prints_nothing(db, run):
    assert run("counted", "--once", "--json")[:2] == (0, "")


def test_changes_that_were_collected_are_an_answer_only_to_who_asks_for_them(db, tmp_path, run):
    commit(db, tmp_path, ("+I", 1), collected=True)
    commit(db, tmp_path, ("-U", 1), ("+U", 2))
    code, out, _ = run("counted", "--once")
    assert (code, len(out.splitlines())) == (0, 2)
    code, _, err = run("counted", "--once", "--since", "0")
    assert (code, "CHANGELOG_EXPIRED" in err) == (1, True)


def test_it_follows_from_the_newest_until_it_is_interrupted(db, tmp_path, run, monkeypatch):
    commit(db, tmp_path, ("+I", 1))
    steps = iter(
        [
            lambda: commit(db, tmp_path),
            lambda: commit(db, tmp_path, ("-U", 1), ("+U", 2)),
            lambda: commit(db, tmp_path, ("-U", 2), ("+U", 3)),
        ]
    )

    def wait(_):
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(watching.time, "sleep", wait)
    code, out, _ = run("counted", "--json")
    assert code == 0
    assert [(row["_op"], row["n"]) for row in map(json.loads, out.splitlines())] == [
        ("-U", 1),
        ("+U", 2),
        ("-U", 2),
        ("+U", 3),
    ]


def test_an_unknown_view_is_wrong_use(db, run):
    assert run("counter", "--once")[0] == 2
