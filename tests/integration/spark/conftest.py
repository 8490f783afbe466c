"""The one Spark session of a test run."""

from __future__ import annotations

import os
import warnings
from functools import partial
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.spark.catalyst.session import by_socket_file
from tests.support.decoding import Decode
from tests.support.decoding import decoded as decode_all
from tests.support.spark_sessions import end_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    **by_socket_file(),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """py4j leaves its sockets to the garbage collector, which is no fault of a test."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    end_session()
    builder = SparkSession.builder.master("local[2]").appName("laminae tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        session.stop()


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[lm.Database]:
    """An empty home; a module that needs more in it has a `db` of its own."""
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A directory of input whose name Spark's readers would take for a pattern."""
    place = tmp_path / "in [a]"
    place.mkdir()
    return place


@pytest.fixture
def time_of_day(spark: SparkSession) -> Iterator[None]:
    """What a session of laminae's own is started with."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark.conf.unset("spark.sql.timeType.enabled")


@pytest.fixture
def decoded(spark: SparkSession) -> Decode:
    return partial(decode_all, spark)
