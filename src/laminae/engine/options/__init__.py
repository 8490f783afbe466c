"""Every option and setting by name: its values, its default, its meaning. One table, shown in docs/reference.

Literal secrets are refused here: options take references, which the driver resolves when they are used. A source's
options are read through `laminae.engine.source_spec`, which parses them once.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from laminae.engine.options.connectors import CONNECTORS, FORMATS, Connector, Format
from laminae.engine.options.rows import ADDRESS, BOOLEANS, DURATION, NAMES, NUMBER, POSITIVE, TEXT, OptionRow, duration
from laminae.errors import InvalidOption, SecretInOption
from laminae.registry.subjects import SubjectStrategy
from laminae.schema.compatibility import CompatibilityMode, RuleSet
from laminae.secrets import hides_value, holds_literal, masked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from laminae.catalog.model import Options

SOURCE_OPTIONS: dict[str, OptionRow] = {
    "connector": OptionRow(CONNECTORS, "push", "Where the records come from"),
    "format": OptionRow(FORMATS, None, "How a record is written"),
    "compatibility": OptionRow(tuple(CompatibilityMode), None, "Mode; NONE, or BACKWARD with a registry"),
    "compatibility_rules": OptionRow(tuple(RuleSet), "seed", "How a mode reads a dropped column"),
    "evolve": OptionRow(("off", "auto", "confirm"), "off", "Whether new columns in the data evolve the schema"),
    "max_new_columns": OptionRow(NUMBER, "100", "More new columns than this in one epoch need confirmation"),
    "on_rejected": OptionRow(
        ("ignore", "dead_letter", "stop"), "ignore", "What happens to records whose new fields were not accepted"
    ),
    "on_error": OptionRow(("dead_letter", "fail"), "dead_letter", "What happens to a record that cannot be decoded"),
    "on_change": OptionRow(ADDRESS, None, "Webhook that receives a notice of each schema change"),
    "changelog": OptionRow(("append", "upsert", "retract", "debezium"), "append", "How a record changes the table"),
    "sequence_by": OptionRow(TEXT, None, "Order of upserts: a column, or a field of Debezium events"),
    "deleted_by": OptionRow(TEXT, None, "BOOLEAN column that is true if the record deletes its key (upsert)"),
    "debezium.time": OptionRow(
        ("millis", "micros", "nanos"), "micros", "Unit of numeric times in events without a schema"
    ),
    "debezium.decimal": OptionRow(
        ("base64", "text"), "base64", "Encoding of text in DECIMAL columns in events without a schema"
    ),
    "timestamp_unit": OptionRow(
        ("seconds", "millis", "micros", "nanos"),
        None,
        "Unit of JSON numbers in TIMESTAMP columns; without it they are dead letters",
    ),
    "weight_field": OptionRow(TEXT, None, "Integer column with the weight of the row; negative retracts it"),
    "op_field": OptionRow(TEXT, None, "Column with the operation: +I, -U, +U, -D, or insert, ..."),
    "version_field": OptionRow(TEXT, None, "Integer field of a record with its schema version"),
    "version_header": OptionRow(TEXT, None, "Header of a record with its schema version"),
    "accept_old_names": OptionRow(BOOLEANS, "true", "Whether a renamed column is still read under its former names"),
    "max_future": OptionRow(
        DURATION, None, "Rows further in the future than this, relative to their record, are dead letters"
    ),
    "idle_timeout": OptionRow(DURATION, None, "A source idle this long no longer holds the watermark back"),
    "hold_max_records": OptionRow(NUMBER, "100000", "Maximum number of records held while the registry is unavailable"),
    "dead_letter_limit": OptionRow(NUMBER, "1000000", "More dead letters than this stop the source"),
    "spool_retention": OptionRow(DURATION, None, "How long pushed rows can be read again"),
    "dead_letter_retention": OptionRow(DURATION, None, "How long dead letters are kept"),
    "max_files_per_epoch": OptionRow(POSITIVE, "1000", "Maximum number of new files or inserts in one epoch"),
    "registry": OptionRow(TEXT, None, "Address of the schema registry"),
    "subject": OptionRow(TEXT, None, "Registry subject; derived by subject_strategy if absent"),
    "subject_strategy": OptionRow(tuple(SubjectStrategy), "TopicName", "How producers name subjects; <topic>-value"),
    "registry_poll": OptionRow(DURATION, None, "Interval for polling the registry for new schemas"),
    **{name: option for row in CONNECTORS.values() for name, option in row.options.items()},
    **{name: option for row in FORMATS.values() for name, option in row.options.items()},
}

VIEW_OPTIONS: dict[str, OptionRow] = {
    "allowed_lateness": OptionRow(DURATION, "0 seconds", "How long after its end a window accepts corrections"),
    "backfill": OptionRow(
        ("true", "false", "available"),
        "true",
        "Whether a new view reads past records: all, none, or those still available",
    ),
    "late_retention": OptionRow(DURATION, None, "How long late rows are kept"),
    "changelog_retention": OptionRow(DURATION, "7 days", "How long the view's changes can be read again"),
}

SINK_OPTIONS: dict[str, OptionRow] = {
    "connector": OptionRow(("files", "console", "kafka", "delta", "iceberg", "postgres"), None, "Where rows go"),
    "format": OptionRow(("json", "parquet", "debezium-json", "avro"), None, "How a row is written"),
    "mode": OptionRow(("append", "changelog", "upsert"), None, "Which changes are written"),
    "path": OptionRow(TEXT, None, "Directory of a files sink, location of a Delta table"),
    "snapshot": OptionRow(BOOLEANS, "true", "Whether the sink starts with a snapshot of the current rows"),
    "topic": OptionRow(TEXT, None, "Kafka topic"),
    "table": OptionRow(TEXT, None, "Table of a database sink, or Iceberg table as namespace.table"),
    "catalog": OptionRow(
        TEXT, None, "Name of the Iceberg catalog; its properties are options with the prefix catalog."
    ),
    "url": OptionRow(TEXT, None, "Address of a database, without a password"),
    "password": OptionRow(TEXT, None, "Reference to the password of a database, such as ${env:NAME}"),
    "create_table": OptionRow(BOOLEANS, "false", "Whether a database sink creates its table if it does not exist"),
    "add_columns": OptionRow(BOOLEANS, "false", "Whether a database sink adds missing columns to its table"),
    "evolve": OptionRow(
        ("off", "auto"), "off", "Whether a database sink adds, renames and widens columns with its relation"
    ),
    "debezium.nulls": OptionRow(("omit", "explicit"), "omit", "Whether a null before or after is written"),
    "debezium.tombstones": OptionRow(BOOLEANS, "true", "Whether a Kafka sink writes a tombstone for a deleted key"),
    "kafka.bootstrap.servers": OptionRow(TEXT, None, "Brokers of a Kafka sink: host:port, separated by commas"),
    "registry": OptionRow(TEXT, None, "Address of the schema registry of a Kafka sink in Avro"),
}

SETTINGS: dict[str, OptionRow] = {
    "state.schema-evolution.enable": OptionRow(BOOLEANS, "false", "Whether state is migrated to a changed schema"),
    "changelog_retention": OptionRow(DURATION, "7 days", "How long changes can be read again"),
    "dead_letter_retention": OptionRow(DURATION, None, "How long dead letters are kept"),
    "late_retention": OptionRow(DURATION, None, "How long late rows are kept"),
    "spool_retention": OptionRow(DURATION, None, "How long pushed rows can be read again"),
    "allowed_functions": OptionRow(NAMES, None, "User-defined functions that queries may call, separated by commas"),
}


def checked(given: Iterable[tuple[str, str]], table: Mapping[str, OptionRow], owner: str) -> Options:
    """The options sorted by name, after checking names, values and that there is no literal secret."""
    values: dict[str, str] = {}
    for name, value in given:
        if name in values:
            raise InvalidOption(option=name, owner=owner, problem="it is set twice", advice="Set it once.")
        values[name] = _checked(name, value, table, owner)
    return tuple(sorted(values.items()))


def _checked(name: str, value: str, table: Mapping[str, OptionRow], owner: str) -> str:
    if holds_literal(name, value):
        raise SecretInOption(option=name, owner=owner)
    row = table.get(name)
    if row is None:
        # A name with a dot is a setting of a client library, which validates it itself.
        if "." in name and table is not SETTINGS:
            return value
        close = get_close_matches(name, table, n=1)
        advice = f"Did you mean {close[0]}?" if close else f"The options are {', '.join(sorted(table))}."
        raise InvalidOption(option=name, owner=owner, problem="there is no such option", advice=advice)
    value = next((str(allowed) for allowed in row.choices or () if allowed.casefold() == value.casefold()), value)
    if not row.accepts(value):
        problem = f"{'its value' if hides_value(name) else repr(masked(value))} does not fit"
        raise InvalidOption(option=name, owner=owner, problem=problem, advice=f"Give {row.expectation}.")
    return value


def option(options: Options, name: str, table: Mapping[str, OptionRow] = SOURCE_OPTIONS) -> str | None:
    """The value that is set, else the table's default; settings of a client library have no default."""
    row = table.get(name)
    return dict(options).get(name, row.default if row is not None else None)


def retention(options: Options, settings: Mapping[str, str], name: str) -> timedelta | None:
    """How long something is retained: the object's option, else the setting of the home; None means forever."""
    text = dict(options).get(name) or settings.get(name) or SETTINGS[name].default
    return None if text is None else duration(text)


def register_connector(row: Connector) -> None:
    """Make a connector of another package known, with the options of its row, before a source is created with it."""
    _refuse_known(row.name, CONNECTORS, "connector")
    CONNECTORS[row.name] = row
    SOURCE_OPTIONS.update({name: option for name, option in row.options.items() if name not in SOURCE_OPTIONS})


def register_format(row: Format, connectors: Iterable[str]) -> None:
    """Make a format of another package known. `connectors` are the names of those that can carry it."""
    _refuse_known(row.name, FORMATS, "format")
    FORMATS[row.name] = row
    SOURCE_OPTIONS.update({name: option for name, option in row.options.items() if name not in SOURCE_OPTIONS})
    for name in connectors:
        CONNECTORS[name] = replace(CONNECTORS[name], formats=(*CONNECTORS[name].formats, row.name))


def _refuse_known(name: str, table: Mapping[str, object], option: str) -> None:
    if name in table:
        advice = "Give it another name."
        raise InvalidOption(option=option, owner=name, problem="it is registered already", advice=advice)
