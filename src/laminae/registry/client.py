"""The client: questions of the Confluent REST API as methods, answers as values, failures as errors of laminae.

What an id stands for never changes and is asked for once. Nothing here knows records, sources or columns.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import quote

import orjson

from laminae.errors import (
    InvalidAvroSchema,
    RegistryRefused,
    RegistryUnavailable,
    SchemaNotRegistered,
    SchemaTypeUnsupported,
)
from laminae.registry import answers
from laminae.registry.http import HttpTransport, NoAnswer, Request
from laminae.registry.inlining import inlined
from laminae.registry.model import AVRO, SubjectVersion
from laminae.registry.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.registry.http import Answer, Transport
    from laminae.registry.model import Judgement, Reference, RegisteredSchema
    from laminae.registry.settings import RegistrySettings
    from laminae.schema.compatibility import CompatibilityMode

_T = TypeVar("_T")
Version = int | Literal["latest"]
MOST_REFERENCES = 1_000


class RegistryClient:
    """One registry as one source or sink sees it. Threads may share it."""

    __slots__ = ("_lock", "_places", "_retry", "_schemas", "_settings", "_transport")

    def __init__(
        self, settings: RegistrySettings, transport: Transport | None = None, retry: Retry | None = None
    ) -> None:
        self._settings = settings
        self._transport = transport or HttpTransport(settings)
        self._retry = retry or Retry()
        self._lock = Lock()
        self._schemas: dict[int, RegisteredSchema] = {}
        self._places: dict[tuple[str, int], SubjectVersion] = {}

    def __repr__(self) -> str:
        return f"RegistryClient({self._settings.address!r})"

    def subjects(self) -> tuple[str, ...]:
        return self._ask(Request("GET", "/subjects"), answers.texts)

    def versions(self, subject: str) -> tuple[int, ...]:
        """The versions under a subject, oldest first."""
        request = Request("GET", f"/subjects/{_part(subject)}/versions")
        return tuple(sorted(self._ask(request, answers.numbers, f"subject {subject}")))

    def version(self, subject: str, version: Version = "latest") -> SubjectVersion:
        """Where a version stands, and its id; the schema itself is known from then on."""
        wanted = f"{'schema' if version == 'latest' else f'version {version}'} under subject {subject}"
        request = Request("GET", f"/subjects/{_part(subject)}/versions/{version}")
        place, found = self._ask(request, lambda json: answers.subject_version(json, subject), wanted)
        self._keep(found)
        return self._keep_place(place)

    def schema(self, schema_id: int) -> RegisteredSchema:
        """What an id stands for; raises `SchemaNotRegistered` if it stands for nothing."""
        known = self._schemas.get(schema_id)
        if known is not None:
            return known
        request = Request("GET", f"/schemas/ids/{schema_id}")
        found = self._ask(request, lambda json: answers.schema(json, schema_id), f"schema of id {schema_id}")
        return self._keep(found)

    def places(self, schema_id: int) -> tuple[SubjectVersion, ...]:
        """Every subject and version under which an id is registered now."""
        request = Request("GET", f"/schemas/ids/{schema_id}/versions")
        return self._ask(request, lambda json: answers.places(json, schema_id), f"schema of id {schema_id}")

    def place(self, subject: str, schema_id: int) -> SubjectVersion:
        """The place of an id under this subject, the newest of several; raises `SchemaNotRegistered` if it has none.

        Only an id that is there is remembered: one that is not may be registered in the next moment.
        """
        known = self._places.get((subject, schema_id))
        if known is not None:
            return known
        found = [place for place in self.places(schema_id) if place.subject == subject]
        if not found:
            wanted = f"schema of id {schema_id} under subject {subject}"
            raise SchemaNotRegistered(source=self._settings.source, wanted=wanted)
        return self._keep_place(max(found, key=lambda place: place.version))

    def avro(self, schema_id: int) -> str:
        """The Avro schema of an id as one text that needs no other; another kind is `SchemaTypeUnsupported`."""
        found = self.schema(schema_id)
        if found.type != AVRO:
            raise SchemaTypeUnsupported(source=self._settings.source, schema_id=schema_id, type=found.type_name)
        if not found.references:
            return found.text
        return inlined(found.text, [each.text for each in self._referenced(found)])

    def compatibility(self, subject: str) -> CompatibilityMode:
        """The level of a subject, else that of the whole registry."""
        try:
            request = Request("GET", f"/config/{_part(subject)}")
            return self._ask(request, answers.level, f"level of subject {subject}")
        except SchemaNotRegistered:
            return self._ask(Request("GET", "/config"), answers.level, "level")

    def judge(
        self, subject: str, text: str, references: Sequence[Reference] = (), version: Version = "latest"
    ) -> Judgement:
        """Whether the registry itself would take this Avro schema as the next of its subject; it registers nothing."""
        path = f"/compatibility/subjects/{_part(subject)}/versions/{version}?verbose=true"
        return self._ask(Request("POST", path, _body(text, references)), answers.judgement, f"subject {subject}")

    def register(self, subject: str, text: str, references: Sequence[Reference] = ()) -> int:
        """The id of this Avro schema under the subject, where it stands from now on if it did not before."""
        request = Request("POST", f"/subjects/{_part(subject)}/versions", _body(text, references))
        return self._ask(request, answers.registered_id, f"subject {subject}")

    def _referenced(self, root: RegisteredSchema) -> list[RegisteredSchema]:
        """Every schema that this one refers to, directly or not, each once."""
        seen: dict[tuple[str, int], RegisteredSchema] = {}
        waiting = list(root.references)
        while waiting:
            reference = waiting.pop()
            key = (reference.subject, reference.version)
            if key in seen:
                continue
            found = self.schema(self.version(*key).id)
            seen[key] = found
            waiting.extend(found.references)
            if len(seen) > MOST_REFERENCES:
                problem = f"schema id {root.id} refers to more than {MOST_REFERENCES} others"
                raise InvalidAvroSchema(path="/", problem=problem)
        return list(seen.values())

    def _keep(self, found: RegisteredSchema) -> RegisteredSchema:
        with self._lock:
            return self._schemas.setdefault(found.id, found)

    def _keep_place(self, place: SubjectVersion) -> SubjectVersion:
        with self._lock:
            self._places[place.subject, place.id] = place
        return place

    def _ask(self, request: Request, read: Callable[[object], _T], wanted: str = "subjects") -> _T:
        source, problem = self._settings.source, "it was not asked"
        for attempt in self._retry.rounds():
            try:
                answer = self._transport(request)
            except NoAnswer as error:
                problem = str(error)
                continue
            if 200 <= answer.status < 300:
                try:
                    return read(orjson.loads(answer.body))
                except ValueError as error:
                    # A gateway in front of a registry that is away likes to say so in HTML and with status 200.
                    problem = f"its answer is none of a registry: {error}"
                    continue
            self._raise_refusal(request, answer, wanted)
            problem = answers.words(answer)
            attempt.wait_at_least = answer.retry_after
        raise RegistryUnavailable(source=source, problem=f"{problem} ({request})")

    def _raise_refusal(self, request: Request, answer: Answer, wanted: str) -> None:
        """Raises for an answer that another attempt would not change."""
        source = self._settings.source
        if answers.is_absent(answer):
            raise SchemaNotRegistered(source=source, wanted=wanted)
        advice = answers.REFUSALS.get(answer.status)
        if advice is not None:
            told = answers.words(answer)
            raise RegistryRefused(source=source, request=str(request), problem=told, advice=advice)


def _part(subject: str) -> str:
    return quote(subject, safe="")


def _body(text: str, references: Sequence[Reference]) -> dict[str, object]:
    given = [{"name": each.name, "subject": each.subject, "version": each.version} for each in references]
    return {"schema": text, "references": given} if given else {"schema": text}
