"""A lake of a test: an Iceberg catalog in SQLite, its tables beside it, and the options that name one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import load_catalog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyiceberg.table import Table

NAMESPACE = "shop"


class Lake:
    def __init__(self, place: Path) -> None:
        # A space and brackets: paths are written as URIs by some and as patterns by others.
        self.place = place / "lake [1]"
        self.place.mkdir()
        self._properties = {"uri": f"sqlite:///{place}/catalog.db", "warehouse": str(self.place)}
        self.catalog = load_catalog("lake", **self._properties)
        self.catalog.create_namespace(NAMESPACE)

    def table(self, name: str, columns: Mapping[str, pa.DataType], required: Sequence[str] = ()) -> Table:
        fields = [pa.field(column, kind, column not in required) for column, kind in columns.items()]
        return self.catalog.create_table(f"{NAMESPACE}.{name}", pa.schema(fields))

    def load(self, name: str) -> Table:
        return self.catalog.load_table(f"{NAMESPACE}.{name}")

    def options(self, name: str, **more: str) -> str:
        """As they stand behind WITH."""
        reached = {f"catalog.{key}": value for key, value in self._properties.items()}
        given = {"connector": "iceberg", "catalog": "lake", "table": f"{NAMESPACE}.{name}", **reached, **more}
        return "(" + ", ".join(f"{key} = '{value}'" for key, value in given.items()) + ")"

    def settings(self, name: str) -> dict[str, str]:
        return {
            "table": f"{NAMESPACE}.{name}",
            "catalog": "lake",
            **{f"catalog.{key}": value for key, value in self._properties.items()},
        }


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
