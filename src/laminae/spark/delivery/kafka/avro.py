"""Rows as Avro behind Confluent's frame, with schemas that the sink registers itself under the topic's subjects.

The columns of the epoch are the schema, so it evolves with the view; the registry judges every new one by its level.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laminae.codec.avro_of_columns import avro_of_columns
from laminae.codec.confluent import Framed, join
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import NotAvailable
from laminae.registry import RegistryClient, RegistrySettings, SubjectStrategy, subject_of
from laminae.spark.delivery.kafka.messages import RowEncoders
from laminae.spark.delivery.modes import OWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import Options, SinkRecord
    from laminae.spark.delivery.kafka.messages import Encoder
    from laminae.spark.delivery.segment import Segment

NAMESPACE = "laminae"
_NO_LETTER = re.compile(r"[^A-Za-z0-9_]")


def avro_rows(segment: Segment, sink: SinkRecord) -> RowEncoders:
    """What writes the keys and rows of this segment. Its schemas are registered when it is made."""
    columns = pa.schema([field for field in segment.schema if field.name not in OWN])
    name = f"{NAMESPACE}.{_record_name(sink.relation)}"
    value = _encoder(columns, name, sink, is_key=False)
    if not segment.key:
        return RowEncoders(value, value)
    key = pa.schema([columns.field(column) for column in segment.key])
    return RowEncoders(_encoder(key, f"{name}_key", sink, is_key=True), value)


def _encoder(columns: pa.Schema, name: str, sink: SinkRecord, is_key: bool) -> Encoder:
    text = avro_of_columns(columns, name)
    topic = option(sink.options, "topic", SINK_OPTIONS) or ""
    subject = subject_of(SubjectStrategy.TOPIC_NAME, topic, name, is_key=is_key)
    schema_id = _registered(sink.options, sink.name, subject, text)
    write = _writer(text)

    def encode(rows: pa.RecordBatch) -> list[bytes]:
        return [join(Framed(schema_id, write(row))) for row in rows.to_pylist(maps_as_pydicts="strict")]

    return encode


def _record_name(relation: str) -> str:
    """The relation's name in the characters that Avro has."""
    plain = _NO_LETTER.sub("_", relation)
    return f"_{plain}" if plain[:1].isdigit() else plain


# What an id stands for never changes, so a schema that was registered once needs no registry any more.
@lru_cache(maxsize=1024)
def _registered(options: Options, sink: str, subject: str, text: str) -> int:
    return RegistryClient(RegistrySettings.of_options(dict(options), sink)).register(subject, text)


@lru_cache(maxsize=256)
def _writer(text: str) -> Callable[[dict[str, Any]], bytes]:
    try:
        import fastavro
    except ImportError as error:
        raise NotAvailable(
            feature="A Kafka sink in Avro",
            problem="fastavro is not installed",
            advice="Install it: pip install 'laminae[kafka]'.",
        ) from error
    schema = fastavro.parse_schema(json.loads(text))

    def write(row: dict[str, Any]) -> bytes:
        written = BytesIO()
        fastavro.schemaless_writer(written, schema, row)
        return written.getvalue()

    return write
