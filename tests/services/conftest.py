"""Services for the run, started when the first test asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.services.spark_cluster import running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url
