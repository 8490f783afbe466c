"""The progress bar of `laminae state`: on a terminal it shows each step and how far it is, elsewhere nothing."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

import laminae.cli.state


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(laminae.cli.state, "Console", lambda **_: console)
    return shown


def plain(shown: io.StringIO) -> list[str]:
    return [line.strip() for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue()))]


def test_a_terminal_shows_each_step_and_how_far_it_is(terminal: io.StringIO) -> None:
    with laminae.cli.state._steps(is_json=False) as on_step:
        on_step("plan the new query", 0, 1)
        on_step("rewrite operator 0, store default", 50, 200)
    lines = plain(terminal)
    assert any("rewrite operator 0, store default" in line and "25%" in line for line in lines)


def test_a_machine_is_shown_no_bar(terminal: io.StringIO) -> None:
    with laminae.cli.state._steps(is_json=True) as on_step:
        on_step("rewrite operator 0, store default", 50, 200)
    assert terminal.getvalue() == ""


def test_what_is_no_terminal_is_shown_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with laminae.cli.state._steps(is_json=False) as on_step:
        on_step("rewrite operator 0, store default", 50, 200)
    assert capsys.readouterr().err.strip() == ""
