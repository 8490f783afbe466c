"""In a run without the tests of the marker `spark`, a test that starts Spark fails: it lacks the marker."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

MESSAGE = "this test starts Spark: mark it with @pytest.mark.spark"


def pytest_configure(config: pytest.Config) -> None:
    if "not spark" in config.getoption("markexpr"):
        config.pluginmanager.register(WithoutSpark())


class WithoutSpark:
    """Only the first test that starts Spark is blamed: the JVM outlives it. A failure of its own is kept."""

    def __init__(self) -> None:
        self.is_reported = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.passed and not self.is_reported and has_jvm():
            self.is_reported = True
            report.outcome, report.longrepr = "failed", MESSAGE
        return report


def has_jvm() -> bool:
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._gateway is not None
