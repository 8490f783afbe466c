"""Debezium's envelopes under a subject: the columns of a source are those of the row inside, and follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae import sql as ddl
from laminae.codec.value_encodings import has_rules, rule_of
from laminae.engine.engine import Engine
from laminae.engine.writer_schemas import registry as subjects
from laminae.engine.writer_schemas.binding import SubjectFinder, WriterSchemaBinder, as_of
from laminae.registry import RegistryClient, RegistrySettings, Retry
from tests.support.registry_double import Registry, avro_field

if TYPE_CHECKING:
    from laminae.catalog import Catalog

CREATE = """
    CREATE SOURCE things ({}) WITH (connector = 'kafka', topic = 'things', format = 'avro', registry = 'http://registry',
                                    changelog = 'debezium', kafka.bootstrap.servers = 'localhost:1')
"""
ID = avro_field("id", "int")
AT = avro_field("at", ["null", {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}], default=None)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    client = RegistryClient(RegistrySettings("http://registry", "things"), made, Retry(attempts=1))
    monkeypatch.setattr(subjects, "client_of", lambda options, owner: client)
    return made


@pytest.fixture
def engine(catalog: Catalog) -> Engine:
    return Engine(catalog, {"registry": SubjectFinder(catalog)})


def put(registry: Registry, *fields: dict[str, object]) -> int:
    """The id of an envelope around a row of these fields."""
    row = {"type": "record", "name": "Value", "fields": fields}
    source = {"type": "record", "name": "Source", "fields": [avro_field("lsn", ["null", "long"])]}
    parts = [("before", ["null", row]), ("after", ["null", "Value"]), ("source", source), ("op", "string")]
    return registry.put("things-value", *(avro_field(name, kind) for name, kind in parts), name="Envelope")


def create(engine: Engine, columns: str) -> None:
    (statement,) = ddl.parse(CREATE.format(columns))
    engine.run(statement)


def test_source_has_the_columns_of_the_row_in_the_envelope(catalog, engine, registry):
    put(registry, ID, AT)
    create(engine, "PRIMARY KEY (id)")
    source = engine.source("things")
    assert [(field.name, str(field.type)) for field in source.schema] == [("id", "int32"), ("at", "timestamp[us]")]
    assert not has_rules(source.schema)
    (bound,) = catalog.writers(source.id)
    assert [rule_of(field) for field in bound.columns] == [None, ("micros", 0)]


def test_row_that_changes_adds_columns_and_takes_none_away(catalog, engine, registry):
    put(registry, ID, avro_field("name", ["null", "string"], default=None))
    create(engine, "PRIMARY KEY (id)")
    newer = put(registry, avro_field("id", "long"), AT)
    WriterSchemaBinder(catalog, engine).meet("things", newer)
    source = engine.source("things")
    assert [(field.name, str(field.type), field.nullable) for field in source.schema] == [
        ("id", "int64", True),
        ("name", "string", True),
        ("at", "timestamp[us]", True),
    ]
    assert as_of(catalog.writers(source.id))[-1].refusal is None


def test_declared_type_of_a_time_is_kept(catalog, engine, registry):
    create(engine, "id BIGINT NOT NULL, at TIMESTAMP, PRIMARY KEY (id)")
    WriterSchemaBinder(catalog, engine).meet("things", put(registry, ID, AT))
    (bound,) = catalog.writers(engine.source("things").id)
    assert (bound.refusal, str(bound.columns.field("at").type)) == (None, "timestamp[us, tz=UTC]")


def test_record_that_is_no_envelope_has_no_rows(catalog, engine, registry):
    create(engine, "id BIGINT NOT NULL, PRIMARY KEY (id)")
    WriterSchemaBinder(catalog, engine).meet("things", registry.put("things-value", ID))
    (bound,) = catalog.writers(engine.source("things").id)
    assert "not a Debezium envelope" in (bound.refusal or "")
