"""The registry client: what it asks, keeps, tries again and refuses. Its answers are written down here."""

from __future__ import annotations

import json

import pytest

from laminae.errors import RegistryRefused, RegistryUnavailable, SchemaNotRegistered, SchemaTypeUnsupported
from laminae.net.http import NoResponse, Response
from laminae.registry import Reference, RegistryClient, RegistrySettings, SubjectVersion
from laminae.schema.compatibility import CompatibilityMode
from tests.support.registry_answers import AWAY, Script, Waits, refused, said

SETTINGS = RegistrySettings("http://registry:8081", "orders")
ITEM = '{"type":"record","name":"Item","namespace":"a","fields":[{"name":"x","type":"int"}]}'


def client(
    *answers: Response | NoResponse, waits: Waits | None = None, chance: float = 1.0
) -> tuple[RegistryClient, Script]:
    script = Script(list(answers))
    return RegistryClient(SETTINGS, script, (waits or Waits()).retry(chance)), script


def test_an_id_is_asked_for_once() -> None:
    registry, script = client(said({"schema": ITEM}))
    assert registry.schema(7) is registry.schema(7)
    assert script.paths == ["/schemas/ids/7"]
    assert (registry.schema(7).type, registry.schema(7).text) == ("AVRO", ITEM)


def test_a_version_makes_its_schema_and_place_known() -> None:
    registry, script = client(said({"subject": "s", "version": 3, "id": 7, "schema": ITEM}))
    assert registry.version("s") == SubjectVersion("s", 3, 7)
    assert (registry.schema(7).text, registry.place("s", 7).version) == (ITEM, 3)
    assert script.paths == ["/subjects/s/versions/latest"]


def test_the_newest_place_under_the_subject_counts() -> None:
    held = [{"subject": "s", "version": 1}, {"subject": "s", "version": 4}, {"subject": "t", "version": 9}]
    registry, _ = client(said(held))
    assert registry.place("s", 7) == SubjectVersion("s", 4, 7)


def test_an_id_of_another_subject_is_not_registered_and_asked_for_again() -> None:
    registry, script = client(said([{"subject": "t", "version": 1}]), said([{"subject": "s", "version": 1}]))
    with pytest.raises(SchemaNotRegistered, match="schema of id 7 under subject s"):
        registry.place("s", 7)
    assert registry.place("s", 7).version == 1
    assert len(script.asked) == 2


def test_versions_come_oldest_first_and_subjects_as_they_are() -> None:
    registry, _ = client(said([3, 1, 2]), said(["b", "a"]))
    assert registry.versions("s") == (1, 2, 3)
    assert registry.subjects() == ("b", "a")


def test_a_subject_is_quoted_in_the_path() -> None:
    registry, script = client(said([1]))
    registry.versions("a/b c?")
    assert script.paths == ["/subjects/a%2Fb%20c%3F/versions"]


@pytest.mark.parametrize("failure", [AWAY, refused(503), refused(429), refused(500), refused(408)])
def test_a_registry_that_is_away_for_a_moment_is_asked_again(failure: Response | NoResponse) -> None:
    waits = Waits()
    registry, script = client(failure, failure, said([1]), waits=waits)
    assert registry.versions("s") == (1,)
    assert (len(script.asked), waits.waited) == (3, [0.1, 0.2])


def test_a_registry_that_stays_away_is_unavailable_with_source_and_cause() -> None:
    waits = Waits()
    registry, _ = client(*[AWAY] * 5, waits=waits)
    with pytest.raises(
        RegistryUnavailable, match=r"of orders does not answer: ConnectionRefusedError.*GET /schemas/ids/7"
    ):
        registry.schema(7)
    assert waits.waited == [0.1, 0.2, 0.4, 0.8]


def test_it_recovers_without_a_new_client() -> None:
    registry, _ = client(*[AWAY] * 5, said({"schema": ITEM}))
    with pytest.raises(RegistryUnavailable):
        registry.schema(7)
    assert registry.schema(7).text == ITEM


@pytest.mark.parametrize(
    "body", [b"<html>soon back</html>", b"", b'{"schema": 7}', b"[]", b'{"schema": "{}", "references": 1}']
)
def test_an_answer_that_is_none_of_a_registry_counts_as_no_answer(body: bytes) -> None:
    registry, script = client(*[Response(200, body)] * 5)
    with pytest.raises(RegistryUnavailable, match="not that of a schema registry"):
        registry.schema(7)
    assert len(script.asked) == 5


@pytest.mark.parametrize("code", [40401, 40402, 40403])
def test_what_the_registry_does_not_have_is_said_at_once(code: int) -> None:
    registry, script = client(refused(404, code))
    with pytest.raises(SchemaNotRegistered, match="no schema of id 7"):
        registry.schema(7)
    assert len(script.asked) == 1


@pytest.mark.parametrize("answer", [refused(404), Response(404, b"not found"), Response(404, b"")])
def test_a_404_of_another_server_says_nothing_about_schemas(answer: Response) -> None:
    registry, _ = client(answer)
    with pytest.raises(RegistryRefused, match="Check the address"):
        registry.schema(7)


@pytest.mark.parametrize(
    ("status", "told"), [(401, "credentials"), (403, "permission"), (307, "redirects"), (422, "Correct")]
)
def test_a_refusal_is_not_tried_again_and_says_what_to_do(status: int, told: str) -> None:
    registry, script = client(refused(status))
    with pytest.raises(RegistryRefused) as caught:
        registry.schema(7)
    assert told in caught.value.remedy
    assert len(script.asked) == 1


def test_words_of_the_registry_are_shown_without_what_looks_like_a_secret() -> None:
    registry, _ = client(refused(401, message="no user for Basic dXNlcjpwYXNz at http://u:hunter2@host"))
    with pytest.raises(RegistryRefused) as caught:
        registry.schema(7)
    assert "no user for" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in ("dXNlcjpwYXNz", "hunter2"))


@pytest.mark.parametrize("level", list(CompatibilityMode))
def test_the_level_of_a_subject_is_a_mode(level: CompatibilityMode) -> None:
    registry, script = client(said({"compatibilityLevel": str(level)}))
    assert registry.compatibility("s") is level
    assert script.paths == ["/config/s"]


def test_a_subject_without_a_level_has_that_of_the_registry() -> None:
    registry, script = client(refused(404, 40408), said({"compatibilityLevel": "FULL"}))
    assert registry.compatibility("s") is CompatibilityMode.FULL
    assert script.paths == ["/config/s", "/config"]


def test_a_schema_is_registered_with_its_references() -> None:
    registry, script = client(said({"id": 9}))
    assert registry.register("s", ITEM, (Reference("a.B", "b", 2),)) == 9
    (request,) = script.asked
    assert (request.method, request.path) == ("POST", "/subjects/s/versions")
    assert request.body == {"schema": ITEM, "references": [{"name": "a.B", "subject": "b", "version": 2}]}


def test_the_registry_says_why_it_would_not_take_a_schema() -> None:
    registry, _ = client(said({"is_compatible": False, "messages": ["reader has no default"]}))
    judgement = registry.judge("s", ITEM)
    assert (judgement.is_compatible, judgement.reasons) == (False, ("reader has no default",))


@pytest.mark.parametrize(("kind", "name"), [("JSON", "JSON Schema"), ("PROTOBUF", "Protobuf"), ("THRIFT", "THRIFT")])
def test_other_kinds_of_schemas_are_not_supported_yet(kind: str, name: str) -> None:
    registry, _ = client(said({"schema": "{}", "schemaType": kind}))
    with pytest.raises(SchemaTypeUnsupported, match=f"Schema id 7 of orders is {name}, which is not supported"):
        registry.avro(7)


def test_references_are_followed_each_once_and_written_into_one_schema() -> None:
    order = {
        "type": "record",
        "name": "b.Order",
        "fields": [{"name": "i", "type": "a.Item"}, {"name": "j", "type": "a.Item"}],
    }
    item = {"type": "record", "name": "a.Item", "fields": [{"name": "k", "type": "Kind"}]}
    kind = {"type": "enum", "name": "a.Kind", "symbols": ["X"]}
    to_kind = {"name": "a.Kind", "subject": "kind", "version": 1}
    registry, script = client(
        said(
            {"schema": json.dumps(order), "references": [{"name": "a.Item", "subject": "item", "version": 2}, to_kind]}
        ),
        said({"subject": "kind", "version": 1, "id": 1, "schema": json.dumps(kind)}),
        said({"subject": "item", "version": 2, "id": 2, "schema": json.dumps(item), "references": [to_kind]}),
    )
    whole = json.loads(registry.avro(3))
    assert script.paths == ["/schemas/ids/3", "/subjects/kind/versions/1", "/subjects/item/versions/2"]
    first, second = whole["fields"]
    assert first["type"]["fields"][0]["type"]["symbols"] == ["X"]
    assert second["type"] == "a.Item"


def test_a_schema_without_references_is_left_as_it_is() -> None:
    registry, _ = client(said({"schema": ITEM}))
    assert registry.avro(7) == ITEM
