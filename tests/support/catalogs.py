"""Catalogs for tests: where one is, and the shortest way to write each update."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog import open_catalog
from laminae.catalog.model import PendingState, SinkStatus, ViewStatus
from laminae.catalog.store import SqlCatalog
from laminae.catalog.updates import (
    AddPending,
    AddVersion,
    CommitEpoch,
    CreateSource,
    DropObject,
    PutSink,
    PutView,
    ResolvePending,
)
from laminae.schema.change import HistoryChange

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from laminae.catalog import Catalog
    from laminae.catalog.drivers.protocol import Driver
    from laminae.catalog.model import SourceRecord

SQLITE, POSTGRES = "sqlite", "postgres"
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class CatalogPlace:
    """What `open_catalog` takes; picklable, so that other processes can open the same catalog."""

    backend: str
    home: str
    url: str | None

    def open(self) -> Catalog:
        return open_catalog(self.home, self.url)

    def opened(self) -> AbstractContextManager[Catalog]:
        return closing(self.open())


def driver_of(catalog: Catalog) -> Driver:
    """What is beneath, for tests that do harm from outside."""
    assert isinstance(catalog, SqlCatalog)
    return catalog._driver


def columns(*names: str, after: pa.Schema | None = None) -> pa.Schema:
    """BIGINT columns with ids from 1 on, behind those of another schema."""
    schema = pa.schema([]) if after is None else after
    for name in names:
        schema = schema.append(pa.field(name, pa.int64(), metadata={"laminae:id": str(len(schema) + 1)}))
    return schema


def added(*names: str) -> tuple[HistoryChange, ...]:
    return tuple(HistoryChange("ColumnAdded", name, new_type="BIGINT") for name in names)


def create(name: str, *names: str, options: tuple[tuple[str, str], ...] = ()) -> CreateSource:
    names = names or ("id",)
    return CreateSource(
        name=name,
        schema=columns(*names),
        next_column_id=len(names) + 1,
        options=options,
        primary_key=(),
        watermark=None,
        history=added(*names),
        compatibility="NONE",
        applied_at=NOON,
    )


def evolve(source: SourceRecord, *names: str) -> AddVersion:
    """The source's next version, with these columns added."""
    return AddVersion(
        source_id=source.id,
        source_name=source.name,
        expected_version=source.version,
        schema=columns(*names, after=source.schema),
        next_column_id=source.next_column_id + len(names),
        history=added(*names),
        trigger="Ddl",
        compatibility="BACKWARD",
        forced=False,
        applied_at=NOON + source.version * SECOND,
    )


def propose(source: SourceRecord, fingerprint: str = "f") -> AddPending:
    return AddPending(
        source_id=source.id,
        source_name=source.name,
        base_version=source.version,
        schema=columns(*source.schema.names[:-1]),
        fingerprint=fingerprint,
        summary="DROP COLUMN",
        reasons="a dropped column loses its values",
        trigger="Data",
        created_at=NOON,
        schema_id=17,
        registry_version=3,
    )


def resolve(source: SourceRecord, change_id: int, state: PendingState = PendingState.CONFIRMED) -> ResolvePending:
    return ResolvePending(change_id, source.id, source.name, state, NOON + SECOND)


def view(name: str, *, replaces: int | None = None, query: str = "SELECT 1") -> PutView:
    reads = (("orders", (1, 2)), ("other", ()))
    return PutView(name, query, "CHANGES", (), ViewStatus.CREATING, reads, NOON, replaces)


def sink(name: str) -> PutSink:
    return PutSink(name, "orders", (("connector", "console"),), SinkStatus.LIVE, NOON)


def drop(kind: str, object_id: int, name: str = "x") -> DropObject:
    return DropObject(kind, object_id, name, NOON + SECOND)


def epoch(source: SourceRecord, batch: int, *, start: str = "0", end: str = "10") -> CommitEpoch:
    return CommitEpoch(source.id, source.name, batch, start, end, source.version, 10, NOON)


def made(catalog: Catalog, name: str = "orders", *names: str) -> SourceRecord:
    """A new source in the catalog."""
    catalog.commit([create(name, *names)])
    return live(catalog, name)


def live(catalog: Catalog, name: str = "orders") -> SourceRecord:
    found = catalog.source(name)
    assert found is not None
    return found
