"""Which log belongs to which connector: one table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from laminae.engine.changelogs import DEBEZIUM, changelog_of, event_order, keeps_table, key_of
from laminae.engine.options import is_framed, option
from laminae.engine.subjects import has_registry
from laminae.errors import InvalidOption, NotAvailable
from laminae.spark.debezium import DebeziumLog
from laminae.spark.files.csv import CsvReader
from laminae.spark.files.parquet import ParquetReader
from laminae.spark.kafka.log import KafkaLog
from laminae.spark.kafka.settings import PREFIX
from laminae.spark.lake.delta_commits import commit_list
from laminae.spark.lake.delta_table import table_path
from laminae.spark.lake.iceberg_table import table_settings
from laminae.spark.lake.marks import marks_of
from laminae.spark.lake.snapshot_list import snapshot_list
from laminae.spark.lake.table_log import TableLog
from laminae.spark.logs.files import FilesLog
from laminae.spark.logs.head import log_directory
from laminae.spark.logs.numbered import LIMIT
from laminae.spark.logs.push import PushLog
from laminae.spark.logs.rate import RateLog
from laminae.spark.paths import local_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import SourceRecord
    from laminae.spark.contract import SourceLog
    from laminae.spark.logs.files import FileReader
    from laminae.spark.logs.numbered import NumberedLog
    from laminae.spark.logs.tails import Settings


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# More items in one epoch make Spark list and open so many files that the next schema change has to wait for it.
DEFAULT_LIMIT = "1000"


def _push(source: SourceRecord, home: str) -> SourceLog:
    return _unwrapped(source, PushLog(_settings(source, home, connector="push")))


def _unwrapped(source: SourceRecord, log: NumberedLog) -> SourceLog:
    """The log itself, or that of the rows in its envelopes."""
    if changelog_of(source.options) != DEBEZIUM:
        return log
    return DebeziumLog(log, event_order(source.options), key_of(source))


def _files(source: SourceRecord, home: str) -> SourceLog:
    path = option(source.options, "path")
    if path is None:
        raise InvalidOption(
            option="path",
            owner=source.name,
            problem="it is missing",
            advice="Give the directory whose files are the source.",
        )
    place = local_path(path, f"source {source.name}")
    log = FilesLog(_settings(source, home, connector="files", path=place), _reader(source), keeps_table(source))
    return _unwrapped(source, log)


def _reader(source: SourceRecord) -> FileReader | None:
    """Who decodes the files of this source; None: they are lines of JSON."""
    kind = option(source.options, "format") or "json"
    if kind not in READERS:
        raise NotAvailable(
            feature=f"Reading {kind} files",
            problem=f"source {source.name} cannot be read so yet",
            advice=f"Use one of {', '.join(READERS)}.",
        )
    make = READERS[kind]
    if make is not None:
        _refuse_stamps(source, kind)
    return None if make is None else make(source)


def _refuse_stamps(source: SourceRecord, kind: str) -> None:
    if option(source.options, "version_field") is not None:
        raise InvalidOption(
            option="version_field",
            owner=source.name,
            problem=f"records of {kind} files have the version in force where their file stands",
            advice="Leave it out, or use format = 'json'.",
        )


def _csv(source: SourceRecord) -> FileReader:
    return CsvReader((option(source.options, "csv_delimiter") or ",").replace("\\t", "\t"), keeps_table(source))


def _parquet(source: SourceRecord) -> FileReader:
    return ParquetReader()


READERS: dict[str, Callable[[SourceRecord], FileReader] | None] = {
    "json": None,
    "csv": _csv,
    "parquet": _parquet,
    "debezium-json": None,
}


def _rate(source: SourceRecord, home: str) -> SourceLog:
    created = (source.created_at - _EPOCH) // timedelta(microseconds=1)
    speed = option(source.options, "rows_per_second") or "1"
    log = RateLog(_settings(source, home, connector="rate", rows_per_second=speed, created=str(created)))
    return _unwrapped(source, log)


def _iceberg(source: SourceRecord, home: str) -> SourceLog:
    given = table_settings(dict(source.options), source.name)
    _refuse_stamps(source, "Iceberg")
    settings = _settings(source, home, connector="iceberg", **given)
    return TableLog(settings, snapshot_list(settings), marks_of(source))


def _delta(source: SourceRecord, home: str) -> SourceLog:
    path = table_path(dict(source.options), source.name)
    _refuse_stamps(source, "Delta")
    settings = _settings(source, home, connector="delta", path=path)
    return TableLog(settings, commit_list(settings), marks_of(source))


def _kafka(source: SourceRecord, home: str) -> SourceLog:
    kind = option(source.options, "format") or "json"
    if kind not in KAFKA_FORMATS:
        raise NotAvailable(
            feature=f"Reading {kind} from Kafka",
            problem=f"source {source.name} cannot be read so yet",
            advice=f"Use one of {', '.join(KAFKA_FORMATS)}.",
        )
    if is_framed(source.options) and not has_registry(source.options):
        raise InvalidOption(
            option="registry",
            owner=source.name,
            problem="it is missing, and a record in Avro does not say how it was written",
            advice="Give the address of the schema registry: registry = 'https://host:8081'.",
        )
    given = {name: value for name, value in source.options if name in KAFKA_OPTIONS or name.startswith(PREFIX)}
    policy = option(source.options, "on_data_loss") or ""
    return _unwrapped(source, KafkaLog(_settings(source, home, connector="kafka", **given | {"on_data_loss": policy})))


KAFKA_FORMATS = ("json", "avro", "debezium-json")
KAFKA_OPTIONS = ("topic", "topic_pattern", "start", "max_records_per_epoch", "version_header")


def _settings(source: SourceRecord, home: str, **own: str) -> Settings:
    directory = log_directory(source.name, source.id, home)
    limit = dict(source.options).get(LIMIT, DEFAULT_LIMIT)
    return {"source": source.name, "directory": directory.path, LIMIT: limit, **own}


OPENERS: dict[str, Callable[[SourceRecord, str], SourceLog]] = {
    "push": _push,
    "files": _files,
    "rate": _rate,
    "iceberg": _iceberg,
    "delta": _delta,
    "kafka": _kafka,
}
