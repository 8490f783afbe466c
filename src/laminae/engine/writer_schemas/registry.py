"""The registry subject of a source: its name, its newest schema, and the schema of an id."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from laminae.codec.avro.to_columns import columns_of_avro
from laminae.codec.debezium.avro_schema import event_columns_of_avro, event_text
from laminae.engine.options import SOURCE_OPTIONS, checked
from laminae.engine.source_spec import RegistrySpec, SourceSpec, parse_options
from laminae.errors import InvalidOption, LaminaeError, RegistryRefused, RegistryUnavailable, SchemaNotRegistered
from laminae.registry import RegistryClient, RegistrySettings, Retry, SubjectStrategy, subject_of
from laminae.schema.avro import parse_avro
from laminae.schema.avro.nodes import AvroRecord

if TYPE_CHECKING:
    import pyarrow as pa

    from laminae.catalog.model import Options
    from laminae.schema.compatibility import CompatibilityMode
    from laminae.sql import CreateSource

# An epoch waits for the response, and the stream retries automatically, so it should fail soon.
RETRY = Retry(attempts=3, budget=5.0)


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema registered under the subject of a source. `text` is self-contained, without references."""

    schema_id: int
    version: int
    text: str
    columns: pa.Schema


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why records of a schema id cannot be decoded."""

    reason: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a new source takes from its registry: its compatibility mode, and its columns unless they were declared."""

    newest: Registered | None
    level: CompatibilityMode | None


def subject_of_new(statement: CreateSource) -> Subject | None:
    """Query the registry of a source that is being created; None if it has none."""
    options = checked(((o.name, o.value) for o in statement.options), SOURCE_OPTIONS, statement.name)
    spec = parse_options(options)
    if not (spec.is_framed and spec.registry.is_given):
        return None
    newest = None if statement.columns else latest(spec, statement.name)
    has_mode = any(name == "compatibility" for name, _ in options)
    try:
        return Subject(newest, None if has_mode else level(spec, statement.name))
    except (RegistryUnavailable, SchemaNotRegistered):
        # Its columns are declared, and it gets the default mode of sources with a registry.
        return Subject(newest, None)


def registered(spec: SourceSpec, owner: str, schema_id: int) -> Registered | Unfit:
    """The schema of an id. Raises RegistryUnavailable or RegistryRefused if it cannot be determined now."""
    client = client_of(spec.registry.settings, owner)
    try:
        text = client.avro(schema_id)
        place = client.place(_subject(spec.registry, owner, text), schema_id)
        return _registered(spec, schema_id, place.version, text)
    except (RegistryUnavailable, RegistryRefused, InvalidOption):
        raise
    except LaminaeError as problem:
        return Unfit(problem.message)


def latest(spec: SourceSpec, owner: str) -> Registered:
    """The newest schema under the subject."""
    client = client_of(spec.registry.settings, owner)
    place = client.version(_subject(spec.registry, owner, None))
    return _registered(spec, place.id, place.version, client.avro(place.id))


def _registered(spec: SourceSpec, schema_id: int, version: int, text: str) -> Registered:
    """With the columns of the record, or for a Debezium event those of the row in it."""
    if not spec.is_debezium:
        return Registered(schema_id, version, text, columns_of_avro(text))
    plain = event_text(text)
    return Registered(schema_id, version, plain, event_columns_of_avro(plain))


def level(spec: SourceSpec, owner: str) -> CompatibilityMode:
    """The compatibility level that the registry enforces for new schemas under the subject."""
    return client_of(spec.registry.settings, owner).compatibility(_subject(spec.registry, owner, None))


# The schema of an id never changes, so a cached client already has it for the next epoch.
@lru_cache(maxsize=256)
def client_of(options: Options, owner: str) -> RegistryClient:
    return RegistryClient(RegistrySettings.of_options(dict(options), owner), retry=RETRY)


def _subject(registry: RegistrySpec, owner: str, text: str | None) -> str:
    """The `subject` option, else the subject that the strategy derives from the topic and the record name."""
    if registry.subject is not None:
        return registry.subject
    strategy, topic = registry.strategy, registry.topic
    if strategy is SubjectStrategy.TOPIC_NAME and topic is not None and "," not in topic:
        return subject_of(strategy, topic, "")
    if strategy is not SubjectStrategy.TOPIC_NAME and text is not None and topic is not None:
        root = parse_avro(text).root
        return subject_of(strategy, topic, root.name if isinstance(root, AvroRecord) else "")
    raise InvalidOption(
        option="subject",
        owner=owner,
        problem="it is missing and cannot be derived from the topic",
        advice="Set subject = '...' to the subject of the record schemas in the registry.",
    )
