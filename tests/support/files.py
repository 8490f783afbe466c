"""Files sources of the tests: made over a directory, and Parquet columns numbered with field ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import laminae as lm


def create_source(db: lm.Database, inbox: Path, columns: str, **options: str) -> None:
    """A source `s` over the files of a directory."""
    given = {"connector": "files", "path": str(inbox), **options}
    listed = ", ".join(f"{name} = '{value}'" for name, value in given.items())
    db.sql(f"CREATE SOURCE s ({columns}) WITH ({listed})")


def rows(db: lm.Database, columns: str = "*") -> list[tuple[object, ...]]:
    """What that source holds, in the order of its `id`."""
    return db.sql(f"SELECT {columns} FROM s ORDER BY id").fetchall()  # noqa: S608  # fixed by each test


def numbered(table: pa.Table, ids: Sequence[int]) -> pa.Table:
    """The table with these field ids in its columns."""
    fields = [f.with_metadata({"PARQUET:field_id": str(n)}) for f, n in zip(table.schema, ids, strict=True)]
    return pa.table(table.columns, schema=pa.schema(fields))
