"""kill -9 of drivers whose sinks write to a real PostgreSQL and a real Kafka: both end with every row as it is."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

import laminae as lm
from laminae.catalog import open_catalog
from tests.support.crash import seeded_kills
from tests.support.driving import BOTH, PYTHON
from tests.support.received import make_topic, once, received, table
from tests.support.sink_kills import SOURCE, Table, through_kills

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [pytest.mark.services, pytest.mark.postgres]


@pytest.mark.parametrize("kills", [[PYTHON, BOTH], pytest.param(seeded_kills(3), marks=pytest.mark.chaos)])
def test_sinks_of_killed_drivers_have_what_was_sent(
    tmp_path: Path, postgres_url: str, kafka_address: str, connector_jars: None, kills: Sequence[str]
) -> None:
    name, home = f"users-{uuid4()}", str(tmp_path / "home")
    make_topic(kafka_address, name)
    with lm.connect(home) as db, closing(open_catalog(home, None)) as catalog:
        db.sql(SOURCE)
        db.sql(
            f"""CREATE SINK rows FROM users WITH (connector = 'postgres', url = '{postgres_url}', table = '{name}',
                                                  create_table = 'true', add_columns = 'true')"""
        )
        db.sql(
            f"""CREATE SINK messages FROM users WITH (connector = 'kafka', topic = '{name}',
                                                      kafka.bootstrap.servers = '{kafka_address}')"""
        )
        expected = through_kills(db, catalog, tmp_path, kills)
    assert in_postgres(postgres_url, name) == expected
    messages = received(kafka_address, name)
    assert table(messages, "id") == expected
    assert table(once(messages), "id") == expected


def in_postgres(url: str, name: str) -> Table:
    """Rows from before the column was added have none here, as they have in their messages."""
    with psycopg.connect(url) as connection:
        cursor = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
    return {row["id"]: {key: value for key, value in row.items() if value is not None} for row in rows}
