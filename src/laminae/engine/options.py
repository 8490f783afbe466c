"""Every option and setting by name: its values, its default, what it means. One table, shown in docs/reference.

A literal secret is refused here: options take references, resolved by the driver when they are used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

from laminae.errors import InvalidOption, SecretInOption
from laminae.registry.subjects import SubjectStrategy
from laminae.schema.compatibility import CompatibilityMode, RuleSet
from laminae.secrets import holds_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laminae.catalog.model import Options

CONNECTORS = ("push", "files", "kafka", "iceberg", "delta", "rate")
FILE_CONNECTORS = ("files", "iceberg", "delta")
"""The items of their logs are files, any of which may be a dead letter as a whole."""
AVRO = "avro"
BOOLEANS = ("true", "false")
DURATION = re.compile(r"\d+(\.\d+)?\s*(microsecond|millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)
NUMBER = re.compile(r"\d+")
POSITIVE = re.compile(r"0*[1-9]\d*")
TEXT = re.compile(r".+", re.DOTALL)
ADDRESS = re.compile(r"https?://[^\s/@]+(/\S*)?|\$\{(env|file):[^}]+\}")
CHARACTER = re.compile(r"[^\s\"\\]|\t|\\t")
EXPECTATIONS = {
    DURATION: "a duration such as '10 minutes'",
    NUMBER: "a whole number",
    POSITIVE: "a whole number above 0",
    ADDRESS: "an address that begins with http:// or https://, or a reference to one",
    CHARACTER: "one character, or \\t for a tab",
}


@dataclass(frozen=True, slots=True)
class OptionRow:
    """`values` is the closed list of values, or a pattern that a value must match whole."""

    values: tuple[str, ...] | re.Pattern[str]
    default: str | None
    meaning: str

    @property
    def expectation(self) -> str:
        if isinstance(self.values, tuple):
            return "one of " + ", ".join(self.values)
        return EXPECTATIONS.get(self.values, "text")

    def accepts(self, value: str) -> bool:
        if isinstance(self.values, tuple):
            return value in self.values
        # A tab is a character that `strip` takes away.
        return self.values.fullmatch(value if self.values is CHARACTER else value.strip()) is not None


SOURCE_OPTIONS: dict[str, OptionRow] = {
    "connector": OptionRow(CONNECTORS, "push", "Where the records come from"),
    "format": OptionRow(("json", "csv", "parquet", "avro", "debezium-json"), None, "How a record is written"),
    "compatibility": OptionRow(tuple(CompatibilityMode), None, "Mode; NONE, or BACKWARD with a registry"),
    "compatibility_rules": OptionRow(tuple(RuleSet), "seed", "How a mode reads a dropped column"),
    "evolve": OptionRow(("off", "auto", "confirm"), "off", "Whether new columns found in the data evolve the schema"),
    "max_new_columns": OptionRow(NUMBER, "100", "More new columns than this in one epoch need confirmation"),
    "on_rejected": OptionRow(
        ("ignore", "dead_letter", "stop"), "ignore", "What happens to records whose new fields are not taken"
    ),
    "on_error": OptionRow(("dead_letter", "fail"), "dead_letter", "What happens to a record that cannot be decoded"),
    "on_change": OptionRow(ADDRESS, None, "Address that is sent a notice of each change of the schema"),
    "changelog": OptionRow(("append", "upsert", "retract", "debezium"), "append", "What a record means"),
    "sequence_by": OptionRow(TEXT, None, "What orders upserts: a column, or a field of Debezium's events"),
    "deleted_by": OptionRow(TEXT, None, "BOOLEAN column of upserts that is true where a row deletes its key"),
    "debezium.time": OptionRow(
        ("millis", "micros", "nanos"), "micros", "Unit of numbers that are times in events without a schema"
    ),
    "debezium.decimal": OptionRow(
        ("base64", "text"), "base64", "What a text is that is a DECIMAL in events without a schema"
    ),
    "weight_field": OptionRow(TEXT, None, "Integer column of retractions: how often its row comes, or goes below 0"),
    "op_field": OptionRow(TEXT, None, "Column of retractions that names the operation: +I, -U, +U, -D, or insert, ..."),
    "version_field": OptionRow(TEXT, None, "Integer field of a record that names its schema version"),
    "version_header": OptionRow(TEXT, None, "Header of a record that names its schema version"),
    "accept_old_names": OptionRow(BOOLEANS, "true", "Whether a renamed column is still read under its former names"),
    "max_future": OptionRow(DURATION, None, "Rows dated further ahead of their record are dead letters"),
    "idle_timeout": OptionRow(DURATION, None, "A source idle this long no longer holds the watermark back"),
    "hold_max_records": OptionRow(NUMBER, "100000", "Records of an unknown schema id held while the registry is away"),
    "dead_letter_limit": OptionRow(NUMBER, "1000000", "More dead letters than this stop the source"),
    "spool_retention": OptionRow(DURATION, None, "How long pushed rows can be read again"),
    "dead_letter_retention": OptionRow(DURATION, None, "How long dead letters are kept"),
    "max_files_per_epoch": OptionRow(POSITIVE, "1000", "At most so many new files or inserts in one epoch"),
    "path": OptionRow(TEXT, None, "Directory of a files source, location of a Delta table"),
    "csv_delimiter": OptionRow(CHARACTER, ",", "What stands between two fields of a CSV file; \\t is a tab"),
    "rows_per_second": OptionRow(NUMBER, "1", "Speed of a rate source"),
    "topic": OptionRow(TEXT, None, "Kafka topic, or several with commas between them"),
    "topic_pattern": OptionRow(TEXT, None, "Instead of topic: a Java regular expression; topics to come are taken too"),
    "start": OptionRow(
        TEXT, "earliest", "Where a Kafka source begins: earliest, latest, offsets as JSON, or milliseconds since 1970"
    ),
    "max_records_per_epoch": OptionRow(POSITIVE, None, "About so many records of Kafka at most in one epoch"),
    "on_data_loss": OptionRow(
        ("fail", "skip"), "fail", "What happens when records are gone from Kafka before they were read"
    ),
    "registry": OptionRow(TEXT, None, "Address of the schema registry"),
    "subject": OptionRow(TEXT, None, "Registry subject; as subject_strategy makes it otherwise"),
    "subject_strategy": OptionRow(tuple(SubjectStrategy), "TopicName", "How producers name subjects; <topic>-value"),
    "registry_poll": OptionRow(DURATION, None, "How often the registry is asked for a schema that no record has yet"),
    "table": OptionRow(TEXT, None, "Iceberg table, as namespace.table"),
    "catalog": OptionRow(TEXT, None, "Name of the Iceberg catalog; its properties are options behind catalog."),
}

VIEW_OPTIONS: dict[str, OptionRow] = {
    "allowed_lateness": OptionRow(DURATION, "0 seconds", "How long after its end a window takes corrections"),
    "backfill": OptionRow(("true", "false", "available"), "true", "Whether a new view reads what the source holds"),
    "late_retention": OptionRow(DURATION, None, "How long late rows are kept"),
    "changelog_retention": OptionRow(DURATION, "7 days", "How long the view's changes can be read again"),
}

SINK_OPTIONS: dict[str, OptionRow] = {
    "connector": OptionRow(("files", "console", "kafka", "delta", "iceberg", "postgres"), None, "Where rows go"),
    "format": OptionRow(("json", "parquet", "debezium-json", "avro"), None, "How a row is written"),
    "mode": OptionRow(("append", "changelog", "upsert"), None, "What is written of a change"),
    "path": OptionRow(TEXT, None, "Directory of a files sink, location of a Delta table"),
    "snapshot": OptionRow(BOOLEANS, "true", "Whether the sink begins with the present rows"),
    "topic": OptionRow(TEXT, None, "Kafka topic"),
    "table": OptionRow(TEXT, None, "Table of a database sink, or Iceberg table as namespace.table"),
    "catalog": OptionRow(TEXT, None, "Name of the Iceberg catalog; its properties are options behind catalog."),
    "url": OptionRow(TEXT, None, "Address of a database, without a password"),
    "password": OptionRow(TEXT, None, "Reference to the password of a database, such as ${env:NAME}"),
    "create_table": OptionRow(BOOLEANS, "false", "Whether a database sink makes its table where there is none"),
    "add_columns": OptionRow(BOOLEANS, "false", "Whether a database sink adds the columns that its table lacks"),
    "debezium.nulls": OptionRow(("omit", "explicit"), "omit", "Whether a null before or after is written"),
    "debezium.tombstones": OptionRow(BOOLEANS, "true", "Whether a Kafka sink ends a deleted key with a tombstone"),
    "kafka.bootstrap.servers": OptionRow(TEXT, None, "Brokers of a Kafka sink: host:port, separated by commas"),
    "registry": OptionRow(TEXT, None, "Address of the schema registry of a Kafka sink in Avro"),
}

SETTINGS: dict[str, OptionRow] = {
    "state.schema-evolution.enable": OptionRow(BOOLEANS, "false", "Whether state is migrated to a changed schema"),
    "changelog_retention": OptionRow(DURATION, "7 days", "How long changes can be read again"),
    "dead_letter_retention": OptionRow(DURATION, None, "How long dead letters are kept"),
    "late_retention": OptionRow(DURATION, None, "How long late rows are kept"),
    "spool_retention": OptionRow(DURATION, None, "How long pushed rows can be read again"),
}


def checked(given: Iterable[tuple[str, str]], table: Mapping[str, OptionRow], owner: str) -> Options:
    """The options in the order of their names, each known, of its kind, and without a literal secret."""
    found: dict[str, str] = {}
    for name, value in given:
        if name in found:
            raise InvalidOption(option=name, owner=owner, problem="it is given twice", advice="Give it once.")
        found[name] = _checked(name, value, table, owner)
    return tuple(sorted(found.items()))


def _checked(name: str, value: str, table: Mapping[str, OptionRow], owner: str) -> str:
    if holds_literal(name, value):
        raise SecretInOption(option=name, owner=owner)
    row = table.get(name)
    if row is None:
        # A name with a dot is a setting of a client library, which knows it better.
        if "." in name and table is not SETTINGS:
            return value
        close = get_close_matches(name, table, n=1)
        advice = f"Did you mean {close[0]}?" if close else f"The options are {', '.join(sorted(table))}."
        raise InvalidOption(option=name, owner=owner, problem="there is no such option", advice=advice)
    if isinstance(row.values, tuple):
        value = next((str(allowed) for allowed in row.values if allowed.casefold() == value.casefold()), value)
    if not row.accepts(value):
        raise InvalidOption(
            option=name, owner=owner, problem=f"{value!r} does not fit", advice=f"Give {row.expectation}."
        )
    return value


def option(options: Options, name: str, table: Mapping[str, OptionRow] = SOURCE_OPTIONS) -> str | None:
    """The value given, or the table's default."""
    return dict(options).get(name, table[name].default)


def duration(text: str) -> timedelta:
    """A value that fits DURATION as a time span."""
    number, unit = re.fullmatch(r"([\d.]+)\s*([a-z]+?)s?", text.strip().lower()).groups()  # type: ignore[union-attr]  # it fits
    return timedelta(**{f"{unit}s": float(number)})


def retention(options: Options, settings: Mapping[str, str], name: str) -> timedelta | None:
    """How long something is kept: by the object's own option, else by the home's setting; None: for ever."""
    given = dict(options).get(name) or settings.get(name) or SETTINGS[name].default
    return None if given is None else duration(given)


def is_framed(options: Options) -> bool:
    """Whether a record says by a schema id of a registry what it was written with."""
    return option(options, "format") == AVRO


def compatibility_of(options: Options) -> CompatibilityMode:
    """The mode given, else BACKWARD for a source with a registry and NONE for one without."""
    given = dict(options)
    default = CompatibilityMode.BACKWARD if "registry" in given else CompatibilityMode.NONE
    return CompatibilityMode(given.get("compatibility", default))


def rules_of(options: Options) -> RuleSet:
    return RuleSet(option(options, "compatibility_rules") or RuleSet.SEED)
