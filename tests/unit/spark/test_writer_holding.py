"""Records that wait for a registry: how many are held, and when a source waits instead."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.catalog.updates import CommitEpoch
from laminae.engine.engine import Engine
from laminae.engine.epochs.epoch_plan import SourceCache
from laminae.engine.writer_schemas import registry as subjects
from laminae.errors import RegistryUnavailable
from laminae.registry import RegistryClient, RegistrySettings, Retry
from laminae.spark.driver.lease import take_lease
from laminae.spark.driver.storage import Storage
from laminae.spark.epoch.writer_schemas import WriterSchemaResolver
from laminae.spark.formats.avro.decode import HELD
from tests.support.catalogs import NOON, create, live
from tests.support.registry_double import Registry, avro_field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laminae.catalog import Catalog
    from laminae.catalog.model import SourceRecord

AWAY = RegistryUnavailable(source="orders", problem="it is away")
OPTIONS = (
    ("connector", "kafka"),
    ("format", "avro"),
    ("hold_max_records", "5"),
    ("registry", "http://registry"),
    ("topic", "orders"),
)


@pytest.fixture
def source(catalog: Catalog) -> SourceRecord:
    catalog.commit([create("orders", options=OPTIONS)])
    return live(catalog)


@pytest.fixture
def meeting(catalog: Catalog, tmp_path: Path) -> WriterSchemaResolver:
    return WriterSchemaResolver(catalog, Engine(catalog), Storage(tmp_path), 0)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    client = RegistryClient(RegistrySettings("http://registry", "orders"), made, Retry(attempts=1))
    monkeypatch.setattr(subjects, "client_of", lambda options, owner: client)
    monkeypatch.setattr("laminae.spark.epoch.writer_schemas.PAUSE_SECONDS", 0.0)
    return made


@contextmanager
def lease(catalog: Catalog) -> Iterator[int]:
    held = take_lease(catalog, None, lambda: NOON)
    try:
        yield held.token
    finally:
        held.release()


def set_aside(catalog: Catalog, source: SourceRecord, place: Path, reasons: list[str]) -> None:
    """An epoch whose dead letters have these reasons."""
    segment = place / "letters"
    segment.mkdir()
    ids = [7] * len(reasons)
    pq.write_table(pa.table({"version": pa.array(ids, pa.int32()), "reason": reasons}), segment / "part.parquet")
    epoch = CommitEpoch(source.id, source.name, 0, "a", "b", 1, 0, NOON)
    catalog.commit([replace(epoch, dead_letters=len(reasons), dead_letter_segment="letters")])


def test_held_records_are_counted_by_their_schema_id(
    catalog: Catalog, source: SourceRecord, meeting: WriterSchemaResolver, tmp_path: Path
) -> None:
    assert meeting.held(source) == {}
    set_aside(catalog, source, tmp_path, [f"{HELD}7", "its bytes do not match", f"{HELD}7"])
    assert meeting.held(source) == {7: 2}


def test_records_are_held_up_to_a_limit_and_then_the_source_waits(
    catalog: Catalog, source: SourceRecord, meeting: WriterSchemaResolver, tmp_path: Path
) -> None:
    set_aside(catalog, source, tmp_path, [f"{HELD}7", f"{HELD}7"])
    meeting._hold(source, 3, AWAY)
    assert meeting.problem(source.id) is AWAY
    with pytest.raises(RegistryUnavailable):
        meeting._hold(source, 4, AWAY)


def test_where_order_matters_the_source_waits(source: SourceRecord, meeting: WriterSchemaResolver) -> None:
    keyed = replace(source, options=tuple(sorted((*OPTIONS, ("changelog", "upsert")))))
    with pytest.raises(RegistryUnavailable):
        meeting._hold(keyed, 1, AWAY)


def test_what_is_held_is_released_when_the_registry_answers(
    catalog: Catalog, source: SourceRecord, meeting: WriterSchemaResolver, registry: Registry, tmp_path: Path
) -> None:
    for _ in range(7):
        registry.put("orders-value", avro_field("id"))
    assert not meeting.can_release(source)
    meeting._hold(source, 1, AWAY)
    # The epoch that holds it is committed after a look.
    assert not meeting.can_release(source)
    assert meeting.problem(source.id) is AWAY
    set_aside(catalog, source, tmp_path, [f"{HELD}7"])
    registry.is_away = True
    assert not meeting.can_release(source)
    assert "does not answer" in str(meeting.problem(source.id))
    registry.is_away = False
    assert meeting.can_release(source)
    assert meeting.problem(source.id) is None


def test_ids_that_are_met_are_bound_and_the_epoch_runs_again(
    catalog: Catalog, source: SourceRecord, meeting: WriterSchemaResolver, registry: Registry
) -> None:
    memory, schema_id = SourceCache(), registry.put("orders-value", avro_field("id"))
    with lease(catalog) as token:
        assert replace(meeting, lease_token=token).meet(memory, source, [schema_id], lambda: 1)
    assert [writer.schema_id for writer in catalog.writers(source.id)] == [schema_id]
    assert memory.recent == (schema_id,)


def test_records_of_ids_that_cannot_be_asked_about_are_counted_and_held(
    source: SourceRecord, meeting: WriterSchemaResolver, registry: Registry
) -> None:
    registry.is_away = True
    assert not meeting.meet(SourceCache(), source, [7], lambda: 5)
    assert meeting.problem(source.id) is not None
    with pytest.raises(RegistryUnavailable):
        meeting.meet(SourceCache(), source, [7], lambda: 6)


def test_nothing_is_learned_where_every_id_is_known(source: SourceRecord, meeting: WriterSchemaResolver) -> None:
    assert not meeting.meet(SourceCache(), source, [], lambda: 0)


def test_another_driver_finds_what_is_held(
    catalog: Catalog, source: SourceRecord, meeting: WriterSchemaResolver, registry: Registry, tmp_path: Path
) -> None:
    for _ in range(7):
        registry.put("orders-value", avro_field("id"))
    set_aside(catalog, source, tmp_path, [f"{HELD}7"])
    assert meeting.can_release(source)
