"""The table of connectors and the table of formats: one row for each, all that is known of it without Spark.

A row names the function that opens the connector or the format. The function is imported when a source is opened, so
that names and options are known where pyspark is not installed. A connector or a format of another package is
registered with `register_connector` or `register_format` before a source uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.engine.options.rows import CHARACTER, NUMBER, POSITIVE, TEXT, OptionRow
from laminae.errors import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Format:
    """How a record is written.

    `opener` and `event_opener` are `module:function`, from a `SourceRecord` to a `RecordFormat`; `event_opener` is for
    records that are Debezium events (None: they cannot be). With `is_framed`, a record carries the registry id of its
    writer schema. With `infers_types`, the types of new columns are inferred from values. With `has_version_field`, a
    field of the record may name its schema version (`version_field`). `are_lines`: a record is one line of text.
    `has_fast_plan`: its rows can be had without a reason per refused record.
    """

    name: str
    opener: str | None
    event_opener: str | None = None
    is_framed: bool = False
    infers_types: bool = False
    has_version_field: bool = False
    are_lines: bool = False
    has_fast_plan: bool = False
    options: Mapping[str, OptionRow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connector:
    """Where records come from.

    `opener` is `module:function`, from a `SourceRecord` and the home to a `Source`. `formats` are the names of the
    formats that it carries, the default first; `reading` is what a message calls reading one that it does not carry.
    `finder` is `module:function`, from catalog, home and Spark session to the `SchemaFinder` of REFRESH SCHEMA.

    - `stamps_versions`: it stamps each record with the schema version that it was written for.
    - `items_are_files`: an item of its log is a file, and a whole file can be a dead letter.
    - `numbers_lines`: a dead letter of a text format is found by its line number in that file.
    - `has_partitions`: records are ordered within a partition only.
    - `has_external_schema`: the schema is that of a table outside, which epochs follow; it has a format of its own.
    - `writes_json`: it writes its records itself, so that there is no other format than its own.
    - `takes_inserts`: rows are inserted by this process, and kept as long as `spool_retention` says.
    """

    name: str
    opener: str
    formats: tuple[str, ...] = ("json",)
    reading: str = "Reading {format} with this connector"
    finder: str | None = None
    stamps_versions: bool = False
    items_are_files: bool = False
    numbers_lines: bool = False
    has_partitions: bool = False
    takes_inserts: bool = False
    writes_json: bool = False
    has_external_schema: bool = False
    options: Mapping[str, OptionRow] = field(default_factory=dict)


EVENTS = "laminae.spark.formats.debezium.format:open_format"
FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            "json",
            "laminae.spark.formats.json.format:open_format",
            event_opener=EVENTS,
            infers_types=True,
            has_version_field=True,
            are_lines=True,
            has_fast_plan=True,
        ),
        Format(
            "csv",
            "laminae.spark.formats.csv.decode:open_format",
            infers_types=True,
            are_lines=True,
            options={
                "csv_delimiter": OptionRow(CHARACTER, ",", "Field delimiter of CSV files; \\t is a tab"),
            },
        ),
        Format("parquet", "laminae.spark.formats.parquet.decode:open_format", has_fast_plan=True),
        Format(
            "avro",
            "laminae.spark.formats.avro.format:open_format",
            event_opener=EVENTS,
            is_framed=True,
            has_fast_plan=True,
            has_version_field=True,
        ),
        Format("debezium-json", None, event_opener=EVENTS, has_version_field=True),
    )
}

PATH = OptionRow(TEXT, None, "Directory of a files source, location of a Delta table")
CONNECTORS: dict[str, Connector] = {
    row.name: row
    for row in (
        Connector(
            "push",
            "laminae.spark.sources.push:open_source",
            formats=("json", "debezium-json"),
            stamps_versions=True,
            takes_inserts=True,
            writes_json=True,
        ),
        Connector(
            "files",
            "laminae.spark.sources.files.source:open_source",
            formats=("json", "csv", "parquet", "debezium-json"),
            reading="Reading {format} files",
            finder="laminae.spark.sources.files.schema:open_finder",
            items_are_files=True,
            numbers_lines=True,
            options={"path": PATH},
        ),
        Connector(
            "kafka",
            "laminae.spark.sources.kafka.source:open_source",
            formats=("json", "avro", "debezium-json"),
            reading="Reading {format} from Kafka",
            has_partitions=True,
            options={
                "topic": OptionRow(TEXT, None, "Kafka topic, or several separated by commas"),
                "topic_pattern": OptionRow(
                    TEXT, None, "Instead of topic: a Java regular expression; also matches topics created later"
                ),
                "start": OptionRow(
                    TEXT,
                    "earliest",
                    "Start of a Kafka source: earliest, latest, offsets as JSON, or milliseconds since 1970",
                ),
                "max_records_per_epoch": OptionRow(
                    POSITIVE, None, "Approximate maximum number of Kafka records in one epoch"
                ),
                "on_data_loss": OptionRow(
                    ("fail", "skip"), "fail", "What happens when Kafka deleted records before they were read"
                ),
            },
        ),
        Connector(
            "iceberg",
            "laminae.spark.sources.iceberg.source:open_source",
            formats=("parquet",),
            finder="laminae.spark.sources.lakehouse.schema:open_finder",
            items_are_files=True,
            has_external_schema=True,
            options={
                "table": OptionRow(TEXT, None, "Iceberg table, as namespace.table"),
                "catalog": OptionRow(
                    TEXT, None, "Name of the Iceberg catalog; its properties are options with the prefix catalog."
                ),
            },
        ),
        Connector(
            "delta",
            "laminae.spark.sources.delta.source:open_source",
            formats=("parquet",),
            finder="laminae.spark.sources.lakehouse.schema:open_finder",
            items_are_files=True,
            has_external_schema=True,
            options={"path": PATH},
        ),
        Connector(
            "rate",
            "laminae.spark.sources.rate:open_source",
            formats=("json", "debezium-json"),
            writes_json=True,
            options={"rows_per_second": OptionRow(NUMBER, "1", "Rows per second of a rate source")},
        ),
    )
}


def connector_named(name: str) -> Connector:
    """The row of a connector; for an unknown name one that cannot be opened: a catalog may name what is not here."""
    return CONNECTORS.get(name) or Connector(name, "")


def format_named(name: str) -> Format:
    return FORMATS.get(name) or Format(name, None)


def refuse_unknown(connector: Connector, source: str) -> None:
    """NotAvailable if no connector of this name is registered."""
    if connector.name not in CONNECTORS:
        raise NotAvailable(
            feature=f"Connector {connector.name}",
            problem=f"source {source} cannot be read with it yet",
            advice=f"Use one of {', '.join(CONNECTORS)}.",
        )
