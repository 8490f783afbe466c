"""Changes of every kind, and rows of every version, for a stream that runs elsewhere.

What each row must be is worked out row by row, from the schema that its own version had.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

import laminae as lm
from laminae.catalog import open_catalog
from laminae.errors import IncompatibleChange
from tests.support.oracle import project_rows
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from laminae.catalog import Catalog

SECONDS = 120.0
SOURCE = "CREATE SOURCE orders (id BIGINT NOT NULL, amount INT, note STRING DEFAULT 'none', place STRUCT<zip: INT>)"
CHANGES = (
    "ADD COLUMN currency STRING",
    "ADD COLUMN rate INT DEFAULT 7",
    "ALTER COLUMN amount TYPE BIGINT",
    "RENAME COLUMN amount TO cents",
    "ADD COLUMN place.city STRING",
    "ALTER COLUMN note SET DEFAULT 'empty'",
    "ALTER COLUMN cents FIRST",
    "ALTER COLUMN rate AFTER id",
    "DROP COLUMN currency",
    "ADD COLUMN currency STRING DEFAULT 'EUR'",
    "SET COMPATIBILITY = BACKWARD",
    "ALTER COLUMN cents TYPE INT",
    "ALTER COLUMN id DROP NOT NULL",
    "SET COMPATIBILITY = NONE",
    "ALTER COLUMN rate TYPE BIGINT",
    "ALTER COLUMN note DROP DEFAULT",
    "RENAME COLUMN place.zip TO code",
    "DROP COLUMN place.city",
    "ALTER COLUMN rate SET NOT NULL",
    "SET (dead_letter_limit = 500)",
    "ADD COLUMN tags ARRAY<STRING> AFTER id",
)
REFUSED = {"ALTER COLUMN cents TYPE INT"}
# The schema stays as it is when a change is refused, or one of the source's options.
VERSIONS = 1 + sum(not change.startswith("SET") and change not in REFUSED for change in CHANGES)
INSERTS_PER_CHANGE = 2
CHANGES_PER_EPOCH = 4

Stamped = tuple[int, dict[str, object]]
"""A row with every column that its version has, as it must be read."""


def change_and_insert(home: str, url: str | None = None) -> list[Stamped]:
    """What another process does: rows of the version in force, and now and then a wait, so that epochs lie between."""
    sent: list[Stamped] = []
    with lm.connect(home, catalog=url) as db, closing(open_catalog(home, url)) as catalog:
        for number, change in enumerate(CHANGES):
            for _ in range(INSERTS_PER_CHANGE):
                sent += insert(db, first=len(sent))
            if number % CHANGES_PER_EPOCH == 0:
                # What was sent so far is under an older version than what is sent after it.
                until(lambda: rows_committed(catalog) == len(sent), SECONDS, "all that was sent")  # noqa: B023  # at once
            try:
                db.sql(f"ALTER SOURCE orders {change}")
                assert change not in REFUSED, change
            except IncompatibleChange:
                assert change in REFUSED, change
        sent += insert(db, first=len(sent))
    return sent


def rows_committed(catalog: Catalog) -> int:
    source = catalog.source("orders")
    assert source is not None
    return catalog.epoch_totals(source.id).rows


def insert(db: lm.Database, first: int) -> list[Stamped]:
    """Two rows: one with a value in every column, one without those that have a default."""
    schema, version = db.schema("orders"), db.version("orders")
    whole = {field.name: value_of(field.type, first) for field in schema} | {"id": first}
    defaults = {field.name: default_of(field) for field in schema if default_of(field) is not None}
    sparse = {name: value for name, value in whole.items() if name not in defaults} | {"id": first + 1}
    assert db.insert("orders", [whole, sparse]) == 2
    return [(version, whole), (version, sparse | defaults)]


def value_of(kind: pa.DataType, seed: int) -> object:
    if pa.types.is_struct(kind):
        return {field.name: value_of(field.type, seed) for field in kind}
    if pa.types.is_list(kind):
        return [value_of(kind.value_type, seed)]
    return f"text {seed}" if pa.types.is_string(kind) else seed


def default_of(field: pa.Field) -> object:
    text = (field.metadata or {}).get(b"laminae:default")
    return None if text is None else json.loads(text)


def schemas_of(home: str, url: str | None = None) -> dict[int, pa.Schema]:
    with closing(open_catalog(home, url)) as catalog:
        source = catalog.source("orders")
        assert source is not None
        return {version.version: version.schema for version in catalog.versions(source.id)}


def project(
    schemas: dict[int, pa.Schema], stamped: int, current: int, row: dict[str, object]
) -> list[dict[str, object]]:
    return project_rows(schemas[stamped], schemas[current], [row])


def assert_delivered_once(out: Path, sent: list[Stamped], home: str, url: str | None = None) -> None:
    """Every row is in one file, under the version of the epoch that the file is named after."""
    schemas = schemas_of(home, url)
    with lm.connect(home, catalog=url) as db:
        rows = db.sql("SELECT epoch, version FROM laminar_catalog.epochs").arrow().to_pylist()
    epochs: dict[int, int] = {row["epoch"]: row["version"] for row in rows}
    stamped = {row["id"]: (version, row) for version, row in sent}
    assert len(set(epochs.values())) > len(CHANGES) // CHANGES_PER_EPOCH
    seen: list[object] = []
    for file in out.iterdir():
        current = epochs[int(re.match(r"epoch-(\d+)-", file.name)[1])]  # type: ignore[index]  # every file is named so
        for line in file.read_text().splitlines():
            found = json.loads(line)
            version, row = stamped[found["id"]]
            assert [found] == project(schemas, version, current, row)
            seen.append(found["id"])
    assert Counter(seen) == Counter(list(stamped))
