"""A skip is said at the end of a run, and in CI, where everything a test needs is there, it is a failure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"{reason_of(report)} (in CI a skip is a failure)"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A run that leaves something out says so, which a row of `s` does not."""
    for reason in sorted({reason_of(report) for report in terminalreporter.stats.get("skipped", [])}):
        terminalreporter.write_line(reason, yellow=True)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    told = report.longrepr
    return (told[2] if isinstance(told, tuple) else str(told)).removeprefix("Skipped: ")
