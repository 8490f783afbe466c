"""A lake of a test: an Iceberg catalog, its tables beside it, and the options that name one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyiceberg.table import Table

    from tests.services.iceberg_rest import IcebergRest

SQL, REST = "sql", "rest"
both_catalogs = pytest.mark.parametrize(
    "lake", [SQL, pytest.param(REST, marks=pytest.mark.services)], indirect=True, ids=str
)
"""Has the fixture `lake` be one on each kind of catalog in turn."""


class Lake:
    """`place` has its files, `properties` say how its catalog is reached."""

    def __init__(self, place: Path, properties: Mapping[str, str], namespace: str) -> None:
        self.place = place
        self._properties = properties
        self._namespace = namespace
        self.catalog = load_catalog("lake", **properties)
        self.catalog.create_namespace(namespace)

    def table(self, name: str, columns: Mapping[str, pa.DataType], required: Sequence[str] = ()) -> Table:
        fields = [pa.field(column, kind, column not in required) for column, kind in columns.items()]
        return self.catalog.create_table(f"{self._namespace}.{name}", pa.schema(fields))

    def load(self, name: str) -> Table:
        return self.catalog.load_table(f"{self._namespace}.{name}")

    def options(self, name: str, **more: str) -> str:
        """As they stand behind WITH."""
        reached = {f"catalog.{key}": value for key, value in self._properties.items()}
        given = {"connector": "iceberg", "catalog": "lake", "table": f"{self._namespace}.{name}", **reached, **more}
        return "(" + ", ".join(f"{key} = '{value}'" for key, value in given.items()) + ")"

    def settings(self, name: str) -> dict[str, str]:
        return {
            "table": f"{self._namespace}.{name}",
            "catalog": "lake",
            **{f"catalog.{key}": value for key, value in self._properties.items()},
        }


def sql_lake(place: Path) -> Lake:
    """A catalog in SQLite."""
    # A space and brackets: paths are written as URIs by some and as patterns by others.
    files = place / "lake [1]"
    files.mkdir()
    return Lake(files, {"uri": f"sqlite:///{place}/catalog.db", "warehouse": str(files)}, "shop")


def rest_lake(server: IcebergRest, **properties: str) -> Lake:
    """A namespace of its own on a REST catalog that other tests use, too."""
    namespace = f"shop_{uuid4().hex[:8]}"
    return Lake(server.warehouse / namespace, {"uri": server.address, **properties}, namespace)


def put(table: Table, **columns: Sequence[object]) -> Table:
    """Append rows, in the table's own types."""
    known = {field.name: field for field in table.schema().as_arrow()}
    fields = [known[name] for name in columns]
    table.append(pa.table([pa.array(columns[f.name], f.type) for f in fields], schema=pa.schema(fields)))
    return table


def put_row(table: Table) -> Table:
    """Append a row that has a value in every column."""
    return put(table, **{field.name: [_value(field.type)] for field in table.schema().as_arrow()})


def _value(kind: pa.DataType) -> object:
    return 1 if pa.types.is_integer(kind) else 1.5 if pa.types.is_floating(kind) else "x"
