"""What the options of a source say, as typed values. Parsed once from the option text; no other module reads that text.

The text itself is validated where it is set (`engine.options.checked`, `engine.changelogs.check_changelog`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from laminae.engine.options import SOURCE_OPTIONS
from laminae.engine.options.connectors import Connector, Format, connector_named, format_named
from laminae.engine.options.rows import duration
from laminae.registry.subjects import SubjectStrategy
from laminae.schema.compatibility import CompatibilityMode, RuleSet

if TYPE_CHECKING:
    from datetime import timedelta

    from laminae.catalog.model import Options, SourceRecord

DEBEZIUM_JSON = "debezium-json"
EVENT_ORDER = "source.lsn"
FIELD_OPTIONS = ("sequence_by", "deleted_by", "weight_field", "op_field")
KNOWN_SPECS = 1024


class Changelog(StrEnum):
    """What a record means."""

    APPEND = "append"
    UPSERT = "upsert"
    RETRACT = "retract"
    DEBEZIUM = "debezium"

    @property
    def keeps_table(self) -> bool:
        """Whether the source keeps a table: keyed by the primary key, or a multiset of rows without one."""
        return self in (Changelog.UPSERT, Changelog.DEBEZIUM)

    @property
    def retracts(self) -> bool:
        """Whether the source may retract rows."""
        return self is not Changelog.APPEND


class Evolve(StrEnum):
    """What new columns in the data do to the schema."""

    OFF = "off"
    AUTO = "auto"
    CONFIRM = "confirm"


class OnRejected(StrEnum):
    """What happens to records whose new fields are not accepted."""

    IGNORE = "ignore"
    DEAD_LETTER = "dead_letter"
    STOP = "stop"


class OnError(StrEnum):
    """What happens to a record that cannot be decoded."""

    DEAD_LETTER = "dead_letter"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class ChangelogFields:
    """The columns that state what a record does, by the names that they had when the option was set."""

    sequence_by: str | None = None
    deleted_by: str | None = None
    weight_field: str | None = None
    op_field: str | None = None

    def named(self) -> dict[str, str]:
        """The column names that are set, by option."""
        values = {name: getattr(self, name) for name in FIELD_OPTIONS}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class EventSpec:
    """How Debezium events are read: the field that orders them, and the encodings of events without a schema."""

    order: str
    time_unit: str
    decimal: str


@dataclass(frozen=True, slots=True)
class RegistrySpec:
    """The schema registry of a source, if it has one. `settings` are the options `registry` and `registry.*`."""

    settings: Options
    subject: str | None
    strategy: SubjectStrategy
    topic: str | None
    poll: timedelta | None

    @property
    def is_given(self) -> bool:
        return any(name == "registry" for name, _ in self.settings)


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The options of a source, each with its default applied."""

    connector_name: str
    format_name: str | None
    changelog: Changelog
    fields: ChangelogFields
    events: EventSpec
    registry: RegistrySpec
    compatibility: CompatibilityMode
    rules: RuleSet
    evolve: Evolve
    max_new_columns: int
    on_rejected: OnRejected
    on_error: OnError
    dead_letter_limit: int
    hold_max_records: int
    accepts_old_names: bool
    version_field: str | None
    version_header: str | None
    timestamp_unit: str | None
    max_future: timedelta | None
    idle_timeout: timedelta | None
    settings: Options
    """The option text, for what a connector or format hands to its own client (`kafka.*`, `catalog.*`)."""

    @property
    def connector(self) -> Connector:
        """Its row of the table, looked up at each use: another package may register it after this was parsed."""
        return connector_named(self.connector_name)

    @property
    def format(self) -> Format:
        """Its row of the table. `push` and `rate` write JSON; sources of older homes may name any format."""
        connector = self.connector
        name = self.format_name or connector.formats[0]
        is_ignored = connector.writes_json and name not in connector.formats
        return format_named(connector.formats[0] if is_ignored else name)

    @property
    def is_framed(self) -> bool:
        """Whether records carry a schema registry id that names their writer schema."""
        return self.format.is_framed

    @property
    def is_debezium(self) -> bool:
        return self.changelog is Changelog.DEBEZIUM

    @property
    def brings_schemas(self) -> bool:
        """Whether a record may contain its schema inline."""
        return self.is_debezium and not self.is_framed

    @property
    def has_writers(self) -> bool:
        """Whether the catalog stores the writer schemas of this source's records."""
        return self.is_framed or self.brings_schemas

    @property
    def keeps_table(self) -> bool:
        return self.changelog.keeps_table

    @property
    def is_retract(self) -> bool:
        """Whether a record states the weight of its row."""
        return self.changelog is Changelog.RETRACT

    @property
    def evolves(self) -> bool:
        return self.evolve is not Evolve.OFF

    @property
    def refuses_unknown(self) -> bool:
        """Whether a record with a field that is not accepted becomes a dead letter."""
        return self.on_rejected is OnRejected.DEAD_LETTER

    @property
    def is_stamped_by_log(self) -> bool:
        """Whether the source, not the record, states the schema version of a record."""
        return self.connector.stamps_versions or self.version_header is not None

    @property
    def has_stamps(self) -> bool:
        """Whether a record may carry its schema version."""
        return self.is_stamped_by_log or self.version_field is not None

    @property
    def numbers_lines(self) -> bool:
        """Whether a dead letter is identified by its line number in a text file."""
        return self.connector.numbers_lines and self.format.are_lines

    def setting(self, name: str) -> str | None:
        """The text of an option, or its default: for options of one connector or format only, and for messages."""
        return _text(dict(self.settings), name)


def spec_of(source: SourceRecord) -> SourceSpec:
    return parse_options(source.options)


@lru_cache(maxsize=KNOWN_SPECS)
def parse_options(options: Options) -> SourceSpec:
    values = dict(options)
    registry = _registry(values)
    default_mode = CompatibilityMode.BACKWARD if registry.is_given else CompatibilityMode.NONE
    return SourceSpec(
        connector_name=_text(values, "connector") or "",
        format_name=values.get("format"),
        changelog=changelog_in(values),
        fields=ChangelogFields(
            sequence_by=values.get("sequence_by"),
            deleted_by=values.get("deleted_by"),
            weight_field=values.get("weight_field"),
            op_field=values.get("op_field"),
        ),
        events=EventSpec(
            values.get("sequence_by", EVENT_ORDER),
            _text(values, "debezium.time") or "",
            _text(values, "debezium.decimal") or "",
        ),
        registry=registry,
        compatibility=CompatibilityMode(values.get("compatibility", default_mode)),
        rules=_choice(values, "compatibility_rules", RuleSet),
        evolve=_choice(values, "evolve", Evolve),
        max_new_columns=_number(values, "max_new_columns"),
        on_rejected=_choice(values, "on_rejected", OnRejected),
        on_error=_choice(values, "on_error", OnError),
        dead_letter_limit=_number(values, "dead_letter_limit"),
        hold_max_records=_number(values, "hold_max_records"),
        accepts_old_names=_text(values, "accept_old_names") != "false",
        version_field=values.get("version_field"),
        version_header=values.get("version_header"),
        timestamp_unit=values.get("timestamp_unit"),
        max_future=_time(values, "max_future"),
        idle_timeout=_time(values, "idle_timeout"),
        settings=options,
    )


def changelog_in(given: dict[str, str]) -> Changelog:
    """The `changelog` option; its default is debezium for `format = 'debezium-json'` and append otherwise."""
    default = Changelog.DEBEZIUM if given.get("format") == DEBEZIUM_JSON else Changelog.APPEND
    return Changelog(given.get("changelog", default))


def _registry(given: dict[str, str]) -> RegistrySpec:
    own = tuple((name, value) for name, value in given.items() if name == "registry" or name.startswith("registry."))
    return RegistrySpec(
        settings=own,
        subject=given.get("subject"),
        strategy=_choice(given, "subject_strategy", SubjectStrategy),
        topic=given.get("topic"),
        poll=_time(given, "registry_poll"),
    )


_Choice = TypeVar("_Choice", bound=StrEnum)


def _choice(given: dict[str, str], name: str, kind: type[_Choice]) -> _Choice:
    return kind(_text(given, name) or "")


def _number(given: dict[str, str], name: str) -> int:
    return int(_text(given, name) or 0)


def _time(given: dict[str, str], name: str) -> timedelta | None:
    text = _text(given, name)
    return None if text is None else duration(text)


def _text(given: dict[str, str], name: str) -> str | None:
    row = SOURCE_OPTIONS.get(name)
    return given.get(name, row.default if row is not None else None)
