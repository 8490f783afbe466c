"""Encode rows as Avro in the Confluent wire format. The sink registers the schemas under the topic's subjects.

The Avro schema is derived from the epoch's columns, so it evolves with the view; the schema registry checks every new
schema against the subject's compatibility level.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laminae.codec.avro.from_columns import avro_of_columns
from laminae.codec.confluent import Framed, join
from laminae.engine.definitions.sent_schemas import former_names, mistaken
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import NotAvailable, SinkUnavailable
from laminae.registry import RegistryClient, RegistrySettings, SubjectStrategy, subject_of
from laminae.schema.avro.names import is_name
from laminae.schema.column import ALIASES, DEFAULT, INITIAL_DEFAULT
from laminae.schema.defaults import encode_default
from laminae.schema.identity import column_ids
from laminae.spark.sinks.kafka.messages import RowEncoders
from laminae.spark.sinks.modes import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.catalog.model import Options, SinkRecord
    from laminae.spark.sinks.kafka.messages import Encoder
    from laminae.spark.sinks.segment import Segment

NAMESPACE = "laminae"
ELSEWHERE = "create a sink with another topic, which starts with the current rows"
_NO_LETTER = re.compile(r"[^A-Za-z0-9_]")


def avro_rows(segment: Segment, sink: SinkRecord) -> RowEncoders:
    """The key and value encoders of this segment. Calling this registers their schemas."""
    _refuse_mistaken(segment, sink)
    former, ids = former_names(segment.schema, segment.sent), column_ids(segment.schema)
    fields = (_with_fill(field, segment.fills.get(ids.get(field.name, ""))) for field in segment.schema)
    columns = pa.schema([_with_aliases(field, former.get(field.name, ())) for field in fields if field.name not in OWN])
    name = f"{NAMESPACE}.{_record_name(sink.relation)}"
    value = _encoder(columns, name, sink, is_key=False)
    if not segment.key:
        return RowEncoders(value, value)
    key = pa.schema([columns.field(column) for column in segment.key])
    return RowEncoders(_encoder(key, f"{name}_key", sink, is_key=True), value)


def _refuse_mistaken(segment: Segment, sink: SinkRecord) -> None:
    """Refuse a schema under which consumers would read the values of another column from old messages.

    A registry compares only names and types, so it accepts such a schema.
    """
    mismatch = mistaken(segment.schema, segment.sent)
    if mismatch is not None:
        topic = option(sink.options, "topic", SINK_OPTIONS) or ""
        problem = f"column {mismatch[0]} cannot be sent, because {mismatch[1]}; {ELSEWHERE}"
        raise SinkUnavailable(sink=sink.name, location=f"topic {topic}", problem=problem)


def _with_fill(field: pa.Field, fill: pa.Scalar | None) -> pa.Field:
    """Add the fill value of an added column as its default.

    A changelog's schema has no defaults, so consumers would read NULL from messages that predate the column.
    """
    metadata = field.metadata or {}
    if fill is None or not fill.is_valid or DEFAULT in metadata or INITIAL_DEFAULT in metadata:
        return field
    text = encode_default(fill.as_py(), field.type, field.name)
    return field.with_metadata({**metadata, INITIAL_DEFAULT: text.encode()})


def _with_aliases(field: pa.Field, names: Sequence[str]) -> pa.Field:
    """Add former names as Avro aliases, so that consumers with the new schema find the column in old messages."""
    aliases = [name for name in names if is_name(name)]
    if not aliases:
        return field
    return field.with_metadata({**(field.metadata or {}), ALIASES: json.dumps(aliases, ensure_ascii=False).encode()})


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
    """The relation's name, with characters that Avro does not allow in names replaced by `_`."""
    plain = _NO_LETTER.sub("_", relation)
    return f"_{plain}" if plain[:1].isdigit() else plain


# The schema behind an id never changes, so a schema that was registered once needs no further registry call.
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
