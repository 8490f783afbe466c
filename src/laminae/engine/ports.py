"""Ports of the engine: for REFRESH, the lookup of a source's external schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from laminae.catalog.model import SourceRecord


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """A schema found outside, with the registry's id and version if there is a registry."""

    schema: pa.Schema
    schema_id: int | None = None
    registry_version: int | None = None


class SchemaFinder(Protocol):
    """Looks up the current schema of a source in its registry, its catalog or its files."""

    def find(self, source: SourceRecord) -> FoundSchema:
        """Raises `InferenceFailed` or `RegistryUnavailable` when no schema can be found."""
        ...
