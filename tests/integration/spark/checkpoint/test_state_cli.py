"""laminae state: inspect, check and migrate, for people and for machines, with the exit codes of the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import laminae.spark.checkpoint.session
from laminae.cli.app import main
from tests.support.stateful import FIRST, METADATA, QUERIES, put, run, session_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    Call = Callable[..., tuple[int, str]]

APP = """
from pathlib import Path
from tests.support.stateful import CHANGES, QUERIES

inbox = Path({inbox!r})
build = QUERIES["aggregation"].build(inbox, CHANGES["all at once"])
renamed = QUERIES["aggregation"].build(inbox, CHANGES["unchanged"].replace("deviceType", "device"))
number = 7
"""


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a stopped query's checkpoint `old` and an application `app.py`."""
    found = tmp_path_factory.mktemp("cli")
    put(found / "in", "first", FIRST)
    query = QUERIES["aggregation"]
    run(query.build(found / "in", METADATA), session_for(spark, query), found / "old")
    (found / "app.py").write_text(APP.format(inbox=str(found / "in")))
    return found


@pytest.fixture
def call(spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line in the directory, on the one session of the tests: exit code and standard output."""
    session = session_for(spark, QUERIES["aggregation"])
    monkeypatch.setattr(laminae.spark.checkpoint.session, "started_session", lambda settings: session)
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "200")

    def called(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["laminae", "state", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().out

    return called


def test_a_checkpoint_is_shown(call: Call) -> None:
    code, shown = call("inspect", "old")
    assert code == 0
    assert "operator 0 stateStoreSave, store default" in shown
    code, told = call("inspect", "old", "--samples", "1", "--json")
    (store,) = json.loads(told)["stores"]
    assert (code, store["rows"], len(store["samples"])) == (0, 5, 1)


def test_a_change_is_checked_and_migrated(call: Call, place: Path) -> None:
    code, told = call("check", "old", "--query", "app.py:build", "--json")
    assert (code, json.loads(told)["kind"]) == (0, "compatible_after_migration")
    code, told = call("migrate", "old", "denied", "--query", "app.py:build", "--no-enable", "--json")
    assert (code, json.loads(told)["error"]) == (1, "STATE_EVOLUTION_DISABLED")
    code, shown = call("migrate", "old", "new", "--query", "app.py:build")
    assert code == 0
    assert "5 rows are in" in shown
    assert (place / "new" / "commits" / "0").exists()
    assert not (place / "denied").exists()


def test_a_refusal_has_exit_code_1_and_a_remedy(call: Call) -> None:
    code, shown = call("check", "old", "--query", "app.py:renamed")
    assert code == 1
    assert "Keep the old name in the input schema" in shown
    code, told = call("migrate", "old", "other", "--query", "app.py:renamed", "--json")
    assert (code, json.loads(told)["error"]) == (1, "STATE_REFUSED")
    code, told = call("check", "in", "--query", "app.py:build", "--json")
    assert (code, json.loads(told)["error"]) == (1, "CHECKPOINT_INVALID")


@pytest.mark.parametrize("query", ["app.py:number", "app.py:absent", "nowhere.py:build", "build"])
def test_wrong_use_has_exit_code_2(call: Call, query: str) -> None:
    code, told = call("check", "old", "--query", query, "--json")
    assert (code, json.loads(told)["error"]) == (2, "INVALID_QUERY")


def test_a_setting_without_a_value_is_wrong_use(call: Call) -> None:
    code, told = call("check", "old", "--query", "app.py:build", "--conf", "spark.x", "--json")
    assert (code, json.loads(told)["error"]) == (2, "WRONG_USE")
