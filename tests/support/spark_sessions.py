"""The session that a test left behind, and the JVM that all sessions of a run share."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# The first session of a run starts the JVM, whichever test that is in, and its options hold for all others. Tests
# compile much code and run each of it once: the second compiler of Java only costs time. Without it Java has room for
# 48 MB of compiled code, which are full after three minutes of tests: from then on it throws away and compiles again.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
# As `limit_avro_lengths` sets it: tests of decoders use the session without a home.
JVM_OPTIONS += " -Dorg.apache.avro.limits.bytes.maxLength=67108864 -Dorg.apache.avro.limits.string.maxLength=67108864"
JVM_ARGUMENTS = f"--driver-memory 4g --driver-java-options '{JVM_OPTIONS}' pyspark-shell"


def prepare_jvm() -> None:
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", JVM_ARGUMENTS)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def give_jars(files: Sequence[Path]) -> None:
    """Put these on the class path of the JVM of the run, which no test may have started yet."""
    if files and os.environ.get("PYSPARK_SUBMIT_ARGS") == JVM_ARGUMENTS:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, files))} {JVM_ARGUMENTS}"


def end_session() -> None:
    """Stop what runs: the next session begins with settings of its own."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    if session is not None:
        session.stop()
