"""Records behind Confluent's frame to rows of the current schema, by Spark's `from_avro`: no Python sees a row.

Each schema id has a column of its own that is read for its own records alone, with the writer's schema and no other:
to resolve it against a reader's would go by names, and undo column ids. So one pass serves the ids of many versions.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from laminae.codec.confluent import GUID_MAGIC, HEADER, MAGIC
from laminae.codec.event_lines import TOMBSTONE
from laminae.schema.avro import parse_avro
from laminae.schema.projection import projection_between
from laminae.spark.avro_events import NO_NUMBER, Event, WholeEvent
from laminae.spark.avro_reading import (
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
from laminae.spark.avro_values import differs
from laminae.spark.change_events import EVENT, OLD, event_of
from laminae.spark.columns import Columns
from laminae.spark.contract import ERROR, RAW_COLUMNS, ROW, UNKNOWN
from laminae.spark.expression import FALSE, NULL_TEXT, TRUE, Expression, call, cases, column, literal, struct, when
from laminae.spark.literals import type_sql
from laminae.spark.project import keeps_every_place
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laminae.catalog.model import WriterRecord
    from laminae.codec.decoders import DecoderTable
    from laminae.schema.avro import AvroSchema
    from laminae.schema.projection import ColumnProjection

REASONS = {
    "empty": "the record has no value",
    "frame": "the record is not framed as a schema registry's client does it",
    "guid": "the record names its schema by a GUID, which is not supported yet",
}
STAR, FRAME, PARSED = Expression("*"), column("_frame"), "_avro_{}"
AVRO_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
HELD = "held until the registry answers: schema id "
"""How the reason begins of a record whose schema id the registry could not be asked about. It is replayed by itself."""


def avro_stages(spark: SparkSession, table: DecoderTable) -> Sequence[Columns]:
    """Each a projection of the one before: the frame, whose it is, each id's reading, the row or the reason."""
    writers, (readings, owners) = table.writers or (), _readings(table)
    framed = Columns(spark).add(STAR).add(frame_of(), name_of(FRAME))
    owned = Columns(spark).add(STAR).add(_writer(writers, owners), name_of(WRITER))
    parsed = Columns(spark).add(STAR)
    for reading in readings:
        parsed.add(reading.parse(), name_of(reading.parsed))
    refused = [(is_of(place), literal(each.refusal)) for place, each in enumerate(writers) if each.refusal is not None]
    known = [(is_of(reading.place), reading) for reading in readings]
    told = [*((test, reading.problem()) for test, reading in known), *refused]
    if table.event_order is not None:
        told.append((VALUE.is_null(), NULL_TEXT))
    error = cases(told, _strange()) if told else _strange()
    unknown = cases([(WRITER.is_there(), FALSE), (_is_framed(), TRUE)], FALSE)
    last = Columns(spark)
    for name in RAW_COLUMNS:
        # The id is the record's stamp.
        last.add(column(name) if name != "version" else framed_id(), name)
    row = cases([*((test, reading.row()) for test, reading in known), (FALSE, _no_row(table.current))])
    last.add(when(error.is_null(), row), ROW).add(error, ERROR).add(unknown, UNKNOWN)
    if table.has_old_rows:
        olds = [(test, reading.old()) for test, reading in known if isinstance(reading, WholeEvent)]
        last.add(when(error.is_null(), cases([*olds, (FALSE, _no_row(table.current))])), OLD)
    if table.event_order is not None:
        events = [(test, reading.event()) for test, reading in known if isinstance(reading, Event)]
        # Of a record without a schema that is known nothing is done: if it has a value, it has an error.
        events.append((VALUE.is_null(), event_of(literal(TOMBSTONE), NO_NUMBER)))
        last.add(cases(events), EVENT)
    converted_values = [pair for reading in readings if isinstance(reading, Event) for pair in reading.made()]
    if not converted_values:
        return [framed, owned, parsed, last]
    made = Columns(spark).add(STAR)
    for value, name in converted_values:
        made.add(value, name)
    return [framed, owned, parsed, made, last]


def quick_selects(table: DecoderTable, fits: str | None) -> list[str]:
    """The rows of records that are no events, and only of those that have one; each SELECT reads the one before.

    Why a record has none is not asked: the text of a reason is the larger part of a plan, and an epoch with a schema
    that is new waits for the plan.
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
    """Those of the ids that are read, and for each id the place of the one that reads for it."""
    readings, places, owners = list[Reading](), dict[str, int](), list[int]()
    for place, writer in enumerate(table.writers or ()):
        # One that is refused may have no schema at all.
        reading = _reading(table, writer, place) if writer.refusal is None else None
        # Ids whose records are written alike and become the same rows are read as one.
        shared = None if reading is None else reading.renamed
        owners.append(place if shared is None else places.setdefault(shared, place))
        if reading is not None and owners[-1] == place:
            readings.append(reading)
    return readings, owners


def _reading(table: DecoderTable, writer: WriterRecord, place: int) -> Reading:
    parsed, schema = column(PARSED.format(place)), parse_avro(writer.avro)
    projection = projection_between(writer.columns, table.current)
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
    if any(differs(each.type, schema) for each in fields) or not all(map(AVRO_NAME.fullmatch, names)):
        return None
    root = json.loads(text)
    made = [{"name": name, "type": field["type"]} for field, name in zip(root["fields"], names, strict=True)]
    own = {name: root[name] for name in ("type", "name", "namespace") if name in root}
    return json.dumps({**own, "fields": made}, separators=(",", ":"))


def frame_of() -> Expression:
    """The first bytes of a record, which are looked at under the name of FRAME."""
    return call("substring", VALUE, literal(1), literal(HEADER.size))


def framed_id() -> Expression:
    """The schema id of a record, NULL where it has no frame."""
    return when(_is_framed(), SCHEMA_ID.try_cast("INT"))


def _writer(writers: Sequence[WriterRecord], owners: Sequence[int]) -> Expression:
    """The place of a record's id among these, or of the one that reads for it; NULL: it is another id, or none.

    Each column asks for it: a number is compared sooner than bytes.
    """
    frames = [bytes_sql(HEADER.pack(MAGIC, writer.schema_id)) for writer in writers]
    owned = [(FRAME.compared("=", frame), literal(place)) for frame, place in zip(frames, owners, strict=True)]
    return cases([*owned, (FALSE, literal(-1))])


def _is_framed() -> Expression:
    is_whole = call("length", FRAME).compared("=", HEADER.size)
    # Ids are not below 0.
    return (
        is_whole & _begins(MAGIC) & call("substring", FRAME, literal(2), literal(1)).compared("<", bytes_sql(b"\x80"))
    )


def _begins(magic: int) -> Expression:
    return call("substring", FRAME, literal(1), literal(1)).compared("=", bytes_sql(bytes([magic])))


def _strange() -> Expression:
    """Of a record whose id nobody knows, or that has none."""
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
