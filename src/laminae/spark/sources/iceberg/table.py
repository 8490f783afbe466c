"""An Iceberg table as named by options: its catalog, how to connect to it, and loading the current table.

`catalog.*` options are properties of pyiceberg's catalog; their secret references are resolved at each use. Without
such options, pyiceberg's own configuration locates the catalog of that name.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from laminae.errors import InvalidOption, NotAvailable
from laminae.references import resolved
from laminae.secrets import is_reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

PREFIX = "catalog."
DEFAULT_CATALOG = "default"


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """`owner` is the source or sink that uses the table, for errors; `properties` have unresolved secret references."""

    owner: str
    name: str
    catalog: str
    properties: tuple[tuple[str, str], ...]

    @property
    def location(self) -> str:
        """A description of the table for messages."""
        return f"table {self.name} of catalog {self.catalog}"

    def opened(self) -> Catalog:
        """Its catalog. Exceptions of pyiceberg are passed on: the caller knows what they mean in its context."""
        properties = {name.removeprefix(PREFIX): self._resolved(name, value) for name, value in self.properties}
        return _catalog(self.owner, self.catalog, tuple(sorted(properties.items())))

    def load(self) -> Table:
        return self.opened().load_table(self.name)

    def secrets(self) -> tuple[str, ...]:
        """The current values of the secret references among its properties."""
        values = []
        for name, value in self.properties:
            # A reference that cannot be resolved is reported when the catalog is opened.
            with suppress(InvalidOption):
                if is_reference(value):
                    values.append(self._resolved(name, value))
        return tuple(filter(None, values))

    def _resolved(self, name: str, value: str) -> str:
        return resolved(value, name, self.owner) if is_reference(value) else value


def table_settings(options: Mapping[str, str], owner: str) -> dict[str, str]:
    """The options that name a table; InvalidOption if they are missing or invalid."""
    if "table" not in options:
        raise InvalidOption(
            option="table", owner=owner, problem="it is missing", advice="Give it as 'namespace.table' of the catalog."
        )
    if "." not in options["table"]:
        raise InvalidOption(
            option="table",
            owner=owner,
            problem=f"{options['table']} has no namespace",
            advice="Give it as 'namespace.table' of the catalog.",
        )
    return {name: value for name, value in options.items() if name in ("table", "catalog") or name.startswith(PREFIX)}


def iceberg_table(settings: Mapping[str, str], owner: str) -> IcebergTable:
    properties = tuple(sorted((name, value) for name, value in settings.items() if name.startswith(PREFIX)))
    return IcebergTable(owner, settings["table"], settings.get("catalog", DEFAULT_CATALOG), properties)


# Cached, as connecting to a catalog takes longer than a request. Resolved secrets are part of the key, so a rotated
# secret opens a new one.
@lru_cache(maxsize=16)
def _catalog(owner: str, name: str, properties: tuple[tuple[str, str], ...]) -> Catalog:
    try:
        from pyiceberg.catalog import load_catalog

        from laminae.spark.sources.iceberg.rest_catalog import rest_catalog
    except ImportError as error:
        raise NotAvailable(
            feature=f"Iceberg for {owner}",
            problem="pyiceberg is not installed",
            advice="Install it: pip install 'laminae[iceberg]'.",
        ) from error
    return rest_catalog(name, dict(properties)) or load_catalog(name, **dict(properties))
