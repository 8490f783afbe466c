"""Which versions of Spark are supported is said in one place, and an unsupported one is refused by name."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from laminae.errors import NotAvailable
from laminae.spark.catalyst import session
from laminae.spark.catalyst.spark_version import SUPPORTED, require_supported, supported_session
from laminae.spark.checkpoint.session import session_of
from laminae.spark.driver.runtime import Runtime
from tests.support.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class SessionOf:
    """A session of which only the version is asked."""

    version: str


@pytest.mark.parametrize("version", ["4.2.0", "4.2.7", "4.3.0", "4.3.1-SNAPSHOT", "4.2.0.dev1"])
def test_every_maintenance_release_of_a_supported_version_is_accepted(version: str) -> None:
    require_supported(version)


@pytest.mark.parametrize("version", ["3.5.4", "4.1.2", "4.4.0", "4.20.0", "5.0.0-SNAPSHOT", "unknown"])
def test_another_version_is_refused_with_those_that_are_supported(version: str) -> None:
    with pytest.raises(NotAvailable, match=rf"Spark {re.escape(version)} .* laminae runs on Spark 4\.2 and 4\.3"):
        require_supported(version)


def test_a_session_of_an_unsupported_spark_is_not_taken(tmp_path: Path) -> None:
    old: Any = SessionOf("4.1.0")
    nothing: Any = None
    with pytest.raises(NotAvailable, match=r"Spark 4\.1\.0"):
        supported_session(old)
    with pytest.raises(NotAvailable, match=r"Spark 4\.1\.0"):
        session_of(old)
    with pytest.raises(NotAvailable, match=r"Spark 4\.1\.0"):
        Runtime(str(tmp_path), nothing, nothing, (), {}, old).spark  # noqa: B018  # reading it takes the session


def test_an_unsupported_pyspark_starts_no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.0")
    monkeypatch.setattr(session, "start_quiet_jvm", lambda home, settings: pytest.fail("a JVM was started"))
    with pytest.raises(NotAvailable, match=r"Spark 4\.1\.0"):
        session._started("home", (), {})


def test_the_package_installs_exactly_the_supported_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = [each for each in project["dependencies"] if each.startswith("pyspark")]
    (oldest, newest) = (SUPPORTED[0], SUPPORTED[-1])
    assert wanted == f"pyspark>={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"
