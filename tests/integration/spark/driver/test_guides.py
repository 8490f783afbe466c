"""The guides that need services, with real ones in the place of those that `make services` would start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

import laminae as lm
from tests.support.debezium import new_database
from tests.support.pages import ON_SERVICES, name_of, run_page

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.connect import Connect

pytestmark = [pytest.mark.services, pytest.mark.postgres, pytest.mark.usefixtures("connector_jars")]

KAFKA, REGISTRY, POSTGRES, CONNECT = "9092", "8081", "5432", "8083"
"""The ports on the pages."""


@pytest.mark.parametrize("path", ON_SERVICES, ids=name_of)
def test_guides_print_what_they_show(
    path: Path,
    tmp_path: Path,
    spark: SparkSession,
    kafka_address: str,
    registry_address: str,
    postgres_url: str,
    connect_worker: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("SHOP_PASSWORD", "not asked for")
    ports = {
        KAFKA: kafka_address.rpartition(":")[2],
        REGISTRY: str(urlsplit(registry_address).port),
        POSTGRES: str(urlsplit(postgres_url).port),
        CONNECT: str(urlsplit(connect_worker.address).port),
    }
    text = re.sub(rf"\b({'|'.join(ports)})\b", lambda found: ports[found[0]], path.read_text(encoding="utf-8"))
    with new_database(postgres_url, "shop"), lm.connect(str(tmp_path / "home"), spark=spark) as db:
        assert run_page(path, text, db), "the page shows no output"
