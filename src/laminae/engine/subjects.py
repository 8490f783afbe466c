"""The subject of a source in its registry: which one, its newest schema, and what an id under it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from laminae.codec.avro_types import columns_of_avro
from laminae.codec.event_avro import event_columns_of_avro, event_text
from laminae.engine.changelogs import DEBEZIUM, changelog_of
from laminae.engine.options import SOURCE_OPTIONS, checked, is_framed, option
from laminae.errors import InvalidOption, LaminaeError, RegistryRefused, RegistryUnavailable, SchemaNotRegistered
from laminae.registry import RegistryClient, RegistrySettings, Retry, SubjectStrategy, subject_of
from laminae.schema.avro import parse_avro
from laminae.schema.avro.nodes import AvroRecord

if TYPE_CHECKING:
    import pyarrow as pa

    from laminae.catalog.model import Options
    from laminae.ddl import CreateSource
    from laminae.schema.compatibility import CompatibilityMode

# An epoch waits for the answer, and the stream asks again by itself: it is told soon that there is none.
RETRY = Retry(attempts=3, budget=5.0)


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema under the subject of a source. `text` needs no other schema."""

    schema_id: int
    version: int
    text: str
    columns: pa.Schema


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why records of a schema id have no rows."""

    reason: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a new source takes from its registry: its columns, unless they were declared, and its mode."""

    newest: Registered | None
    level: CompatibilityMode | None


def subject_of_new(statement: CreateSource) -> Subject | None:
    """Asks the registry of a source that is to be created; None where it has none."""
    options = checked(((o.name, o.value) for o in statement.options), SOURCE_OPTIONS, statement.name)
    if not is_framed(options) or not has_registry(options):
        return None
    newest = None if statement.columns else latest(options, statement.name)
    given = dict(options).get("compatibility")
    try:
        return Subject(newest, None if given is not None else level(options, statement.name))
    except (RegistryUnavailable, SchemaNotRegistered):
        # Its columns are declared, and it has the mode that any source with a registry has.
        return Subject(newest, None)


def has_registry(options: Options) -> bool:
    return option(options, "registry") is not None


def registered(options: Options, owner: str, schema_id: int) -> Registered | Unfit:
    """What an id stands for; RegistryUnavailable or RegistryRefused where that cannot be known now."""
    client = client_of(_of_registry(options), owner)
    try:
        text = client.avro(schema_id)
        place = client.place(_subject(options, owner, text), schema_id)
        return _registered(options, schema_id, place.version, text)
    except (RegistryUnavailable, RegistryRefused, InvalidOption):
        raise
    except LaminaeError as problem:
        return Unfit(problem.message)


def latest(options: Options, owner: str) -> Registered:
    """The newest schema under the subject."""
    client = client_of(_of_registry(options), owner)
    place = client.version(_subject(options, owner, None))
    return _registered(options, place.id, place.version, client.avro(place.id))


def _registered(options: Options, schema_id: int, version: int, text: str) -> Registered:
    """With the columns of a record, or of the row in it where that is an event."""
    if changelog_of(options) != DEBEZIUM:
        return Registered(schema_id, version, text, columns_of_avro(text))
    plain = event_text(text)
    return Registered(schema_id, version, plain, event_columns_of_avro(plain))


def level(options: Options, owner: str) -> CompatibilityMode:
    """What the registry itself demands of a new schema under the subject."""
    return client_of(_of_registry(options), owner).compatibility(_subject(options, owner, None))


# What an id stands for never changes, so a client that was asked once knows it for the next epoch.
@lru_cache(maxsize=256)
def client_of(options: Options, owner: str) -> RegistryClient:
    return RegistryClient(RegistrySettings.of_options(dict(options), owner), retry=RETRY)


def _of_registry(options: Options) -> Options:
    return tuple((name, value) for name, value in options if name == "registry" or name.startswith("registry."))


def _subject(options: Options, owner: str, text: str | None) -> str:
    """As it is given, else as the strategy makes it of the topic and the record's name."""
    given, topic = option(options, "subject"), option(options, "topic")
    if given is not None:
        return given
    strategy = SubjectStrategy(option(options, "subject_strategy") or SubjectStrategy.TOPIC_NAME)
    if strategy is SubjectStrategy.TOPIC_NAME and topic is not None and "," not in topic:
        return subject_of(strategy, topic, "")
    if strategy is not SubjectStrategy.TOPIC_NAME and text is not None and topic is not None:
        root = parse_avro(text).root
        return subject_of(strategy, topic, root.name if isinstance(root, AvroRecord) else "")
    raise InvalidOption(
        option="subject",
        owner=owner,
        problem="it is missing, and the topic alone does not tell it",
        advice="Give subject = '...', under which the registry has the schemas of the records.",
    )
