"""kill -9 of drivers whose sinks write to an Iceberg and a Delta table: both end with every row as it is."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

import laminae as lm
from laminae.catalog import open_catalog
from tests.support.crash import seeded_kills
from tests.support.driving import BOTH
from tests.support.iceberg import sql_lake
from tests.support.sink_kills import SOURCE, Table, through_kills

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa


@pytest.mark.parametrize("kills", [[BOTH], pytest.param(seeded_kills(4), marks=pytest.mark.chaos)])
def test_tables_of_killed_drivers_have_what_was_sent(tmp_path: Path, kills: Sequence[str]) -> None:
    home, delta, lake = str(tmp_path / "home"), tmp_path / "delta", sql_lake(tmp_path)
    with lm.connect(home) as db, closing(open_catalog(home, None)) as catalog:
        db.sql(SOURCE)
        db.sql(f"CREATE SINK iceberg FROM users WITH {lake.options('users', mode='upsert')}")
        db.sql(f"CREATE SINK delta FROM users WITH (connector = 'delta', mode = 'upsert', path = '{delta}')")
        expected = through_kills(db, catalog, tmp_path, kills)
    for found in (lake.load("users").scan().to_arrow(), DeltaTable(delta).to_pyarrow_table()):
        assert found.num_rows == len(expected)
        assert by_id(found) == expected


def by_id(found: pa.Table) -> Table:
    """Rows from before the column was added have none here."""
    rows = ({name: value for name, value in row.items() if value is not None} for row in found.to_pylist())
    return {row["id"]: row for row in rows}
