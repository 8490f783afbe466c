"""The crash tests on a real cluster: executors in processes of their own, the catalog in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.services.spark_cluster import SETTINGS
from tests.support.crash import Place, assert_kills_change_nothing, seeded_kills

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.chaos, pytest.mark.postgres]


def test_killed_drivers_of_a_cluster_leave_what_an_undisturbed_one_does(
    tmp_path: Path, spark_cluster: str, postgres_url: str
) -> None:
    place = Place(postgres_url, (f"spark.master={spark_cluster}", *SETTINGS))
    assert_kills_change_nothing(tmp_path, seeded_kills(1), place)
