"""The Spark versions that laminae runs on, checked once when a session is started or taken over.

The rest of `catalyst` calls internals of Spark, which may change in any release of Spark, without checking the
version itself: a feature release is listed here when its tests have passed, in step with pyproject.toml.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from laminae.errors import NotAvailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORTED = ((4, 2), (4, 3))
"""Feature releases, with all their maintenance releases."""


def require_supported(version: str) -> None:
    """Raise `NotAvailable` for a version of Spark such as `4.1.2` or `5.0.0-SNAPSHOT` that is not supported."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) in SUPPORTED:
        return
    releases = " and ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
    raise NotAvailable(
        feature=f"Spark {version}",
        problem=f"laminae runs on Spark {releases}",
        advice="Install a supported one (pip install 'pyspark>=4.2,<4.4'); if SPARK_HOME is set, let it point there.",
    )


def supported_session(session: SparkSession) -> SparkSession:
    """The session, unless its Spark is not supported: SPARK_HOME or a cluster may have another version than PySpark."""
    require_supported(session.version)
    return session
