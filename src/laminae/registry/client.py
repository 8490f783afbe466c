"""The schema registry client: Confluent REST requests as methods, responses as values, failures as LaminaeErrors.

The schema of an id never changes and is requested once. Nothing here knows about records, sources or columns.
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
from laminae.net.backoff import Retry
from laminae.net.http import NoResponse
from laminae.registry import responses
from laminae.registry.inlining import inlined
from laminae.registry.model import AVRO, SubjectVersion
from laminae.registry.transport import HttpTransport, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.net.http import Response
    from laminae.registry.model import Judgement, Reference, RegisteredSchema
    from laminae.registry.settings import RegistrySettings
    from laminae.registry.transport import Transport
    from laminae.schema.compatibility import CompatibilityMode

_T = TypeVar("_T")
Version = int | Literal["latest"]
MOST_REFERENCES = 1_000


class RegistryClient:
    """One registry as used by one source or sink. Thread-safe."""

    __slots__ = ("_lock", "_retry", "_schemas", "_settings", "_transport", "_versions")

    def __init__(
        self, settings: RegistrySettings, transport: Transport | None = None, retry: Retry | None = None
    ) -> None:
        self._settings = settings
        self._transport = transport or HttpTransport(settings)
        self._retry = retry or Retry()
        self._lock = Lock()
        self._schemas: dict[int, RegisteredSchema] = {}
        self._versions: dict[tuple[str, int], SubjectVersion] = {}

    def __repr__(self) -> str:
        return f"RegistryClient({self._settings.address!r})"

    def subjects(self) -> tuple[str, ...]:
        return self._ask(Request("GET", "/subjects"), responses.texts)

    def versions(self, subject: str) -> tuple[int, ...]:
        """The versions of a subject, oldest first."""
        request = Request("GET", f"/subjects/{_part(subject)}/versions")
        return tuple(sorted(self._ask(request, responses.numbers, f"subject {subject}")))

    def version(self, subject: str, version: Version = "latest") -> SubjectVersion:
        """The id of a version under a subject; caches its schema as well."""
        wanted = f"{'schema' if version == 'latest' else f'version {version}'} under subject {subject}"
        request = Request("GET", f"/subjects/{_part(subject)}/versions/{version}")
        found_under, schema = self._ask(request, lambda json: responses.subject_version(json, subject), wanted)
        self._cache_schema(schema)
        return self._cache_version(found_under)

    def schema(self, schema_id: int) -> RegisteredSchema:
        """The schema of an id. Raises `SchemaNotRegistered` if there is none."""
        known = self._schemas.get(schema_id)
        if known is not None:
            return known
        request = Request("GET", f"/schemas/ids/{schema_id}")
        schema = self._ask(request, lambda json: responses.schema(json, schema_id), f"schema of id {schema_id}")
        return self._cache_schema(schema)

    def places(self, schema_id: int) -> tuple[SubjectVersion, ...]:
        """Every subject and version under which an id is registered now."""
        request = Request("GET", f"/schemas/ids/{schema_id}/versions")
        return self._ask(request, lambda json: responses.subject_versions(json, schema_id), f"schema of id {schema_id}")

    def place(self, subject: str, schema_id: int) -> SubjectVersion:
        """The newest version of an id under this subject. Raises `SchemaNotRegistered` if there is none.

        Only positive results are cached: a missing id may be registered at any moment.
        """
        known = self._versions.get((subject, schema_id))
        if known is not None:
            return known
        versions = [version for version in self.places(schema_id) if version.subject == subject]
        if not versions:
            wanted = f"schema of id {schema_id} under subject {subject}"
            raise SchemaNotRegistered(source=self._settings.source, wanted=wanted)
        return self._cache_version(max(versions, key=lambda version: version.version))

    def avro(self, schema_id: int) -> str:
        """The Avro schema of an id as self-contained text, with references inlined. Else `SchemaTypeUnsupported`."""
        schema = self.schema(schema_id)
        if schema.type != AVRO:
            raise SchemaTypeUnsupported(source=self._settings.source, schema_id=schema_id, type=schema.type_name)
        if not schema.references:
            return schema.text
        return inlined(schema.text, [referenced.text for referenced in self._referenced(schema)])

    def compatibility(self, subject: str) -> CompatibilityMode:
        """The compatibility level of a subject, else the global one."""
        try:
            request = Request("GET", f"/config/{_part(subject)}")
            return self._ask(request, responses.level, f"level of subject {subject}")
        except SchemaNotRegistered:
            return self._ask(Request("GET", "/config"), responses.level, "level")

    def judge(
        self, subject: str, text: str, references: Sequence[Reference] = (), version: Version = "latest"
    ) -> Judgement:
        """Whether the registry would accept this Avro schema as the next version of its subject. Registers nothing."""
        path = f"/compatibility/subjects/{_part(subject)}/versions/{version}?verbose=true"
        return self._ask(Request("POST", path, _body(text, references)), responses.judgement, f"subject {subject}")

    def register(self, subject: str, text: str, references: Sequence[Reference] = ()) -> int:
        """Register this Avro schema under the subject unless it already is, and return its id."""
        request = Request("POST", f"/subjects/{_part(subject)}/versions", _body(text, references))
        return self._ask(request, responses.registered_id, f"subject {subject}")

    def _referenced(self, root: RegisteredSchema) -> list[RegisteredSchema]:
        """Every schema that this one references, directly or transitively, each once."""
        seen: dict[tuple[str, int], RegisteredSchema] = {}
        waiting = list(root.references)
        while waiting:
            reference = waiting.pop()
            key = (reference.subject, reference.version)
            if key in seen:
                continue
            schema = self.schema(self.version(*key).id)
            seen[key] = schema
            waiting.extend(schema.references)
            if len(seen) > MOST_REFERENCES:
                problem = f"schema id {root.id} refers to more than {MOST_REFERENCES} others"
                raise InvalidAvroSchema(path="/", problem=problem)
        return list(seen.values())

    def _cache_schema(self, schema: RegisteredSchema) -> RegisteredSchema:
        with self._lock:
            return self._schemas.setdefault(schema.id, schema)

    def _cache_version(self, version: SubjectVersion) -> SubjectVersion:
        with self._lock:
            self._versions[version.subject, version.id] = version
        return version

    def _ask(self, request: Request, read: Callable[[object], _T], wanted: str = "subjects") -> _T:
        source, problem = self._settings.source, "no request was sent"
        for attempt in self._retry.rounds():
            try:
                response = self._transport(request)
            except NoResponse as error:
                problem = str(error)
                continue
            if 200 <= response.status < 300:
                try:
                    return read(orjson.loads(response.body))
                except ValueError as error:
                    # A gateway in front of an unavailable registry may respond with HTML and status 200.
                    problem = f"its response is not that of a schema registry: {error}"
                    continue
            self._raise_refusal(request, response, wanted)
            problem = responses.error_text(response)
            attempt.wait_at_least = response.retry_after
        raise RegistryUnavailable(source=source, problem=f"{problem} ({request})")

    def _raise_refusal(self, request: Request, response: Response, wanted: str) -> None:
        """Raise for responses that a retry would not change."""
        source = self._settings.source
        if responses.is_absent(response):
            raise SchemaNotRegistered(source=source, wanted=wanted)
        advice = responses.REFUSALS.get(response.status)
        if advice is not None:
            problem = responses.error_text(response)
            raise RegistryRefused(source=source, request=str(request), problem=problem, advice=advice)


def _part(subject: str) -> str:
    return quote(subject, safe="")


def _body(text: str, references: Sequence[Reference]) -> dict[str, object]:
    if not references:
        return {"schema": text}
    fields = [{"name": used.name, "subject": used.subject, "version": used.version} for used in references]
    return {"schema": text, "references": fields}
