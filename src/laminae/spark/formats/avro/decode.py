"""Decodes records in the Confluent wire format into rows with Spark's `from_avro`, in the JVM: Python handles no row.

Each schema id has its own column, decoded only for the records of that id and with the writer schema alone: resolution
against a reader schema matches fields by name and would undo column ids. One pass serves the ids of many versions.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from laminae.codec.confluent import GUID_MAGIC, HEADER, MAGIC
from laminae.codec.debezium.json_lines import TOMBSTONE
from laminae.schema.avro import parse_avro
from laminae.schema.projection import FillWith, projection_between
from laminae.spark.catalyst.column_list import Columns
from laminae.spark.catalyst.expression import (
    FALSE,
    NULL_TEXT,
    TRUE,
    Expression,
    call,
    cases,
    column,
    literal,
    struct,
    when,
)
from laminae.spark.catalyst.literals import type_sql
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats.avro.record import (
    END_FIELD,
    SCHEMA_ID,
    VALUE,
    WRITER,
    Reading,
    bytes_sql,
    fields_of,
    is_of,
    name_of,
)
from laminae.spark.formats.avro.values import differs
from laminae.spark.formats.debezium.avro import NO_NUMBER, Event, WholeEvent
from laminae.spark.formats.debezium.events import EVENT, OLD, event_of
from laminae.spark.formats.decode_stages import kept_stages, through
from laminae.spark.formats.projection import keeps_every_place
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS, ROW, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import WriterRecord
    from laminae.codec.decoders import DecoderTable
    from laminae.schema.avro import AvroSchema
    from laminae.schema.projection import ColumnProjection

REASONS = {
    "empty": "the record has no value",
    "frame": "the record is not in the Confluent wire format",
    "guid": "the record refers to its schema by a GUID, which is not supported",
}
STAR, FRAME, PARSED = Expression("*"), column("_frame"), "_avro_{}"
AVRO_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
HELD = "held until the registry answers: schema id "
"""Prefix of the error of a record whose schema id could not be looked up. The record is replayed automatically."""


def avro_records(raw: DataFrame, table: DecoderTable) -> DataFrame:
    """`raw` with the columns `_row`, `_error` and `_unknown` (see `formats/protocol.py`), by the table's writers."""
    spark = raw.sparkSession
    return through(raw, kept_stages(table, "avro", lambda: avro_stages(spark, table)))


def avro_stages(spark: SparkSession, table: DecoderTable) -> Sequence[Columns]:
    """Successive projections: the frame header, its writer schema, the record decoded per id, the row or the error."""
    writers, (readings, owners) = table.writers or (), _readings(table)
    framed = Columns(spark).add(STAR).add(frame_of(), name_of(FRAME))
    owned = Columns(spark).add(STAR).add(_writer(writers, owners), name_of(WRITER))
    parsed = Columns(spark).add(STAR)
    for reading in readings:
        parsed.add(reading.parse(), name_of(reading.parsed))
    refused = [
        (is_of(place), literal(writer.refusal)) for place, writer in enumerate(writers) if writer.refusal is not None
    ]
    known = [(is_of(reading.place), reading) for reading in readings]
    errors = [*((test, reading.problem()) for test, reading in known), *refused]
    if table.event_order is not None:
        errors.append((VALUE.is_null(), NULL_TEXT))
    error = cases(errors, _strange()) if errors else _strange()
    unknown = cases([(WRITER.is_there(), FALSE), (_is_framed(), TRUE)], FALSE)
    last = Columns(spark)
    for name in RAW_COLUMNS:
        # The schema id is stored as the record's version stamp.
        last.add(column(name) if name != "version" else framed_id(), name)
    row = cases([*((test, reading.row()) for test, reading in known), (FALSE, _no_row(table.current))])
    last.add(when(error.is_null(), row), ROW).add(error, ERROR).add(unknown, UNKNOWN)
    if table.has_old_rows:
        olds = [(test, reading.old()) for test, reading in known if isinstance(reading, WholeEvent)]
        last.add(when(error.is_null(), cases([*olds, (FALSE, _no_row(table.current))])), OLD)
    if table.event_order is not None:
        events = [(test, reading.event()) for test, reading in known if isinstance(reading, Event)]
        # A record without a known schema has no event: if it has a value, it has an error.
        events.append((VALUE.is_null(), event_of(literal(TOMBSTONE), NO_NUMBER)))
        last.add(cases(events), EVENT)
    converted_values = [pair for reading in readings if isinstance(reading, Event) for pair in reading.made()]
    if not converted_values:
        return [framed, owned, parsed, last]
    converted = Columns(spark).add(STAR)
    for value, name in converted_values:
        converted.add(value, name)
    return [framed, owned, parsed, converted, last]


def quick_selects(table: DecoderTable, fits: str | None) -> list[str]:
    """SELECTs that produce the rows of all records that have one; each reads the result of the previous one.

    Not for Debezium events. The error of a record without a row is not computed: error texts are the larger part of a
    plan, and an epoch with a new schema waits for its plan.
    """
    readings, owners = _readings(table)
    parsed = ", ".join(f"{reading.parse().sql} AS {reading.parsed.sql}" for reading in readings)
    if len(readings) == 1 and table.current.names:
        (only,) = readings
        rows = ", ".join(f"{value.sql} AS {column(name).sql}" for name, value in only.columns())
        last = [f"SELECT {rows} WHERE {(is_of(only.place) & only.fits()).sql}"]
    else:
        known = [(is_of(reading.place), reading) for reading in readings]
        row = cases([*((test, reading.row()) for test, reading in known), (FALSE, _no_row(table.current))])
        whole = cases([*((test, reading.fits()) for test, reading in known), (FALSE, FALSE)], FALSE)
        last = [f"SELECT {row.sql} AS {ROW} WHERE {whole.sql}", f"SELECT {ROW}.*"]
    return [
        f"SELECT {VALUE.sql}, {frame_of().sql} AS {FRAME.sql}",
        f"SELECT *, {_writer(table.writers or (), owners).sql} AS {WRITER.sql}",
        f"SELECT *{', ' if parsed else ''}{parsed}",
        *last,
        *(() if fits is None else (f"SELECT * WHERE {fits}",)),
    ]


def _readings(table: DecoderTable) -> tuple[list[Reading], list[int]]:
    """The readings of the ids that are decoded, and for each id the index of the writer that decodes its records."""
    readings, places, owners = list[Reading](), dict[str, int](), list[int]()
    for place, writer in enumerate(table.writers or ()):
        # A writer that is refused may have no schema at all.
        reading = _reading(table, writer, place) if writer.refusal is None else None
        # Ids whose records have the same encoding and become the same rows share one reading.
        shared = None if reading is None else reading.renamed
        owners.append(place if shared is None else places.setdefault(shared, place))
        if reading is not None and owners[-1] == place:
            readings.append(reading)
    return readings, owners


def _reading(table: DecoderTable, writer: WriterRecord, place: int) -> Reading:
    parsed, schema = column(PARSED.format(place)), parse_avro(writer.avro)
    # An event is an image of a row, and `before` must equal the row that was stored, so a column that events lack must
    # have the same value in all of them.
    fill = FillWith.WRITE if table.event_order is None else FillWith.INITIAL
    projection = projection_between(writer.columns, table.current, fill=fill)
    if table.event_order is not None:
        kind = WholeEvent if table.has_old_rows else Event
        return kind(writer, place, parsed, schema, projection, None, False, table.event_order)
    names = [field.name for field in fields_of(schema)]
    is_flat = bool(names) and END_FIELD not in (*names, *table.current.names)
    return Reading(writer, place, parsed, schema, projection, _renamed(writer.avro, schema, projection), is_flat)


def _renamed(text: str, schema: AvroSchema, projection: ColumnProjection) -> str | None:
    fields, names = fields_of(schema), projection.new_schema.names
    if len(fields) != len(names) or not keeps_every_place(projection):
        return None
    if any(differs(field.type, schema) for field in fields) or not all(map(AVRO_NAME.fullmatch, names)):
        return None
    root = json.loads(text)
    renamed_fields = [{"name": name, "type": field["type"]} for field, name in zip(root["fields"], names, strict=True)]
    own = {name: root[name] for name in ("type", "name", "namespace") if name in root}
    return json.dumps({**own, "fields": renamed_fields}, separators=(",", ":"))


def frame_of() -> Expression:
    """The first bytes of a record, which later expressions refer to as FRAME."""
    return call("substring", VALUE, literal(1), literal(HEADER.size))


def framed_id() -> Expression:
    """The schema id of a record; NULL if it has no frame header."""
    return when(_is_framed(), SCHEMA_ID.try_cast("INT"))


def _writer(writers: Sequence[WriterRecord], owners: Sequence[int]) -> Expression:
    """The index of the writer that decodes a record; NULL if its id is unknown or it has none.

    Every decoded column compares this index: comparing a number is faster than comparing bytes.
    """
    frames = [bytes_sql(HEADER.pack(MAGIC, writer.schema_id)) for writer in writers]
    owned = [(FRAME.compared("=", frame), literal(place)) for frame, place in zip(frames, owners, strict=True)]
    return cases([*owned, (FALSE, literal(-1))])


def _is_framed() -> Expression:
    is_whole = call("length", FRAME).compared("=", HEADER.size)
    # Schema ids are not negative.
    return (
        is_whole & _begins(MAGIC) & call("substring", FRAME, literal(2), literal(1)).compared("<", bytes_sql(b"\x80"))
    )


def _begins(magic: int) -> Expression:
    return call("substring", FRAME, literal(1), literal(1)).compared("=", bytes_sql(bytes([magic])))


def _strange() -> Expression:
    """The error of a record whose schema id is unknown or missing."""
    return cases(
        [
            (VALUE.is_null(), literal(REASONS["empty"])),
            (_is_framed(), call("concat", literal(HELD), SCHEMA_ID)),
            (_begins(GUID_MAGIC), literal(REASONS["guid"])),
        ],
        literal(REASONS["frame"]),
    )


def _no_row(current: pa.Schema) -> Expression:
    kinds = ((field.name, Expression(f"CAST(NULL AS {type_sql(spark_type(field.type))})")) for field in current)
    return struct(kinds)
