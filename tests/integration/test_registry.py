"""The registry client against a real registry, which was started for the run, and one that goes away and comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from laminae.codec.avro.from_columns import avro_of_columns
from laminae.codec.avro.to_columns import columns_of_avro
from laminae.errors import RegistryRefused, RegistryUnavailable, SchemaNotRegistered, SchemaTypeUnsupported
from laminae.registry import Reference, RegistryClient, RegistrySettings, Retry
from laminae.registry.transport import HttpTransport, Request
from laminae.schema.avro import parse_avro
from laminae.schema.compatibility import CompatibilityMode
from tests.services.fixtures import said_if_missing
from tests.services.jars import jars
from tests.services.processes import free_port
from tests.services.registry import running_registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.services

ONE_ATTEMPT = Retry(attempts=1)


def record(name: str, *fields: Mapping[str, object]) -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


X, Y = {"name": "x", "type": "int"}, {"name": "y", "type": "int"}
Y_OR_NULL = {"name": "y", "type": ["null", "int"], "default": None}


@pytest.fixture
def settings(registry_address: str) -> RegistrySettings:
    return RegistrySettings(registry_address, "orders")


@pytest.fixture
def registry(settings: RegistrySettings) -> RegistryClient:
    return RegistryClient(settings)


@pytest.fixture
def subject() -> str:
    """A subject of its own for each test: they share the registry. Its name needs quoting in a path."""
    return f"a topic/{uuid4()}-value"


def set_level(settings: RegistrySettings, path: str, level: str) -> None:
    answer = HttpTransport(settings)(Request("PUT", path, {"compatibility": level}))
    assert answer.status == 200, answer


def test_what_is_registered_is_found_by_id_version_and_subject(registry: RegistryClient, subject: str) -> None:
    first = registry.register(subject, record("Order", X))
    second = registry.register(subject, record("Order", X, Y_OR_NULL))
    assert first != second
    assert registry.versions(subject) == (1, 2)
    assert subject in registry.subjects()
    latest = registry.version(subject)
    assert (latest.version, latest.id) == (2, second)
    assert registry.version(subject, 1).id == first
    assert parse_avro(registry.avro(first)) == parse_avro(record("Order", X))
    assert columns_of_avro(registry.avro(second)).names == ["x", "y"]


def test_registering_again_gives_the_same_id_and_no_version(registry: RegistryClient, subject: str) -> None:
    text = record("Order", X)
    assert registry.register(subject, text) == registry.register(subject, text)
    assert registry.versions(subject) == (1,)


def test_an_id_has_a_place_under_its_own_subject_only(settings: RegistrySettings, subject: str) -> None:
    schema_id = RegistryClient(settings).register(subject, record(f"Order_{uuid4().hex}", X))
    other = RegistryClient(settings)
    assert other.place(subject, schema_id).version == 1
    with pytest.raises(SchemaNotRegistered, match="under subject another"):
        other.place("another", schema_id)


@pytest.mark.parametrize("question", ["schema", "places"])
def test_an_id_that_nobody_registered_is_said_to_be_absent(registry: RegistryClient, question: str) -> None:
    with pytest.raises(SchemaNotRegistered, match="id 2000000000"):
        getattr(registry, question)(2_000_000_000)


def test_a_subject_or_version_that_is_not_there_is_said_to_be_absent(registry: RegistryClient, subject: str) -> None:
    for ask in (lambda: registry.versions(subject), lambda: registry.version(subject)):
        with pytest.raises(SchemaNotRegistered):
            ask()
    registry.register(subject, record("Order", X))
    with pytest.raises(SchemaNotRegistered, match="version 7"):
        registry.version(subject, 7)


def test_references_are_resolved_by_the_versions_they_name(registry: RegistryClient, subject: str) -> None:
    registry.register(f"{subject}-item", record("a.Item", X))
    registry.register(f"{subject}-item", record("a.Item", X, Y_OR_NULL))
    order = record("b.Order", {"name": "i", "type": "a.Item"}, {"name": "j", "type": ["null", "a.Item"]})
    schema_id = registry.register(subject, order, (Reference("a.Item", f"{subject}-item", 1),))
    columns = columns_of_avro(registry.avro(schema_id))
    assert [field.name for field in columns.field("i").type] == ["x"]
    assert columns.field("j").type == columns.field("i").type


def test_the_level_of_a_subject_is_read_as_a_mode(
    registry: RegistryClient, settings: RegistrySettings, subject: str
) -> None:
    registry.register(subject, record("Order", X))
    for level in (CompatibilityMode.FULL_TRANSITIVE, CompatibilityMode.BACKWARD):
        set_level(settings, f"/config/{subject.replace('/', '%2F').replace(' ', '%20')}", level)
        assert registry.compatibility(subject) is level


def test_a_subject_without_a_level_has_that_of_the_registry(registry: RegistryClient, subject: str) -> None:
    assert registry.compatibility(subject) is CompatibilityMode.NONE


def test_the_registry_judges_and_refuses_what_its_level_does_not_allow(
    registry: RegistryClient, settings: RegistrySettings, subject: str
) -> None:
    registry.register(subject, record("Order", X))
    set_level(settings, f"/config/{subject.replace('/', '%2F').replace(' ', '%20')}", "BACKWARD")
    assert registry.judge(subject, record("Order", X, Y_OR_NULL)).is_compatible
    assert not registry.judge(subject, record("Order", X, Y)).is_compatible
    with pytest.raises(RegistryRefused, match="status 409"):
        registry.register(subject, record("Order", X, Y))


def test_text_that_is_no_schema_is_refused(registry: RegistryClient, subject: str) -> None:
    with pytest.raises(RegistryRefused, match="status 422"):
        registry.register(subject, "{")


def test_a_json_schema_is_not_supported_yet(registry: RegistryClient, settings: RegistrySettings, subject: str) -> None:
    schema = json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "title": subject, "type": "object"})
    path = f"/subjects/{uuid4()}/versions"
    answer = HttpTransport(settings)(Request("POST", path, {"schema": schema, "schemaType": "JSON"}))
    assert answer.status == 200, answer
    with pytest.raises(SchemaTypeUnsupported, match="is JSON Schema"):
        registry.avro(json.loads(answer.body)["id"])


def test_columns_written_as_avro_are_taken_and_come_back(registry: RegistryClient, subject: str) -> None:
    everything = columns_of_avro(
        record(
            "Order",
            X,
            {
                "name": "d",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                "default": "A",
            },
            {"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
            {"name": "s", "type": json.loads(record("Inner", X)), "aliases": ["z"]},
            {"name": "l", "type": {"type": "array", "items": ["null", "string"]}},
            {"name": "u", "type": ["null", "int", "string"], "default": None},
        )
    )
    schema_id = registry.register(subject, avro_of_columns(everything, "shop.orders"))
    assert columns_of_avro(registry.avro(schema_id)).equals(everything, check_metadata=True)


def test_a_registry_that_goes_away_is_unavailable_for_new_ids_alone_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    with said_if_missing(), running_registry(tmp_path, port) as address:
        client = RegistryClient(RegistrySettings(address, "orders"), retry=ONE_ATTEMPT)
        known = client.register("s", record("Order", X))
        new = client.register("s", record("Order", X, Y_OR_NULL))
        assert client.place("s", known).version == 1
        text = client.avro(known)
    assert client.avro(known) == text
    assert client.place("s", known).version == 1
    with pytest.raises(RegistryUnavailable, match="of orders does not answer: ConnectionRefusedError"):
        client.avro(new)
    with running_registry(tmp_path, port):
        assert columns_of_avro(client.avro(new)).names == ["x", "y"]
        assert client.place("s", new).version == 2


@pytest.mark.parametrize("missing", ["Java", "Maven"])
def test_a_service_that_cannot_be_had_is_said_not_to_be_tested(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "Maven":
        (tmp_path / "java").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LAMINAE_SERVICES", str(tmp_path / "cache"))
    told = f"{missing} is not installed: kafka was NOT tested"
    with pytest.raises(pytest.skip.Exception, match=told), said_if_missing():
        jars("kafka")
