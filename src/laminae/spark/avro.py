"""Records behind Confluent's frame to rows of the current schema, by Spark's `from_avro`: no Python sees a row.

Each schema id has a column of its own that is read for its own records alone, with the writer's schema and no other:
to resolve it against a reader's would go by names, and undo column ids. So one pass serves the ids of many versions.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.codec.confluent import GUID_MAGIC, HEADER, MAGIC
from laminae.codec.event_avro import AFTER, BEFORE, OP, has_path, row_record
from laminae.codec.event_lines import DELETE, TOMBSTONE
from laminae.codec.sent_values import has_rules
from laminae.schema.avro import parse_avro
from laminae.schema.avro.nodes import AvroRecord
from laminae.schema.column import columns_of
from laminae.schema.projection import projection_between
from laminae.spark.avro_values import declared, differs
from laminae.spark.change_events import EVENT, WITH_ROW, event_of, event_reason
from laminae.spark.columns import Columns
from laminae.spark.contract import ERROR, RAW_COLUMNS, ROW, UNKNOWN
from laminae.spark.expression import (
    FALSE,
    NULL_TEXT,
    TRUE,
    Expression,
    call,
    cases,
    column,
    first_text,
    literal,
    options_map,
    struct,
    when,
)
from laminae.spark.literals import type_sql
from laminae.spark.project import keeps_every_place, misfits, project_columns, violations
from laminae.spark.sent_values import converted, lost_values
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laminae.catalog.model import WriterRecord
    from laminae.codec.decoders import DecoderTable
    from laminae.schema.avro import AvroField, AvroSchema
    from laminae.schema.projection import ColumnProjection

REASONS = {
    "empty": "the record has no value",
    "frame": "the record is not framed as a schema registry's client does it",
    "guid": "the record names its schema by a GUID, which is not supported yet",
}
UNREADABLE = "its bytes are no record of schema id "
AVRO_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
HELD = "held until the registry answers: schema id "
"""How the reason begins of a record whose schema id the registry could not be asked about. It is replayed by itself."""
STAR, VALUE, FRAME, WRITER, PARSED = Expression("*"), column("value"), column("_frame"), column("_writer"), "_avro_{}"
SCHEMA_ID = call("conv", call("hex", call("substring", VALUE, literal(2), literal(4))), literal(16), literal(10))
# A record has to end where its bytes do, which `from_avro` does not look at: these are put behind it and read, too.
END = b"\xa7LAM"
ROW_FIELD, END_FIELD = "row", "laminae_end"
END_OF_RECORD = {"name": END_FIELD, "type": {"type": "fixed", "name": "laminae_end", "size": len(END)}}
NO_NUMBER = Expression("CAST(NULL AS BIGINT)")


def avro_stages(spark: SparkSession, table: DecoderTable) -> Sequence[Columns]:
    """Each a projection of the one before: the frame, whose it is, each id's reading, the row or the reason."""
    writers, (readings, owners) = table.writers or (), _readings(table)
    framed = Columns(spark).add(STAR).add(frame_of(), _name(FRAME))
    owned = Columns(spark).add(STAR).add(_writer(writers, owners), _name(WRITER))
    parsed = Columns(spark).add(STAR)
    for reading in readings:
        parsed.add(reading.parse(), _name(reading.parsed))
    refused = [(_is_of(place), literal(each.refusal)) for place, each in enumerate(writers) if each.refusal is not None]
    known = [(_is_of(reading.place), reading) for reading in readings]
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
    if table.event_order is not None:
        events = [(test, reading.event()) for test, reading in known if isinstance(reading, _Event)]
        # Of a record without a schema that is known nothing is done: if it has a value, it has an error.
        events.append((VALUE.is_null(), event_of(literal(TOMBSTONE), NO_NUMBER)))
        last.add(cases(events), EVENT)
    converted_values = [pair for reading in readings if isinstance(reading, _Event) for pair in reading.made()]
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
        last = [f"SELECT {rows} WHERE {(_is_of(only.place) & only.fits()).sql}"]
    else:
        known = [(_is_of(reading.place), reading) for reading in readings]
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


def _readings(table: DecoderTable) -> tuple[list[_Reading], list[int]]:
    """Those of the ids that are read, and for each id the place of the one that reads for it."""
    readings, places, owners = list[_Reading](), dict[str, int](), list[int]()
    for place, writer in enumerate(table.writers or ()):
        # One that is refused may have no schema at all.
        reading = _reading(table, writer, place) if writer.refusal is None else None
        # Ids whose records are written alike and become the same rows are read as one.
        shared = None if reading is None else reading.renamed
        owners.append(place if shared is None else places.setdefault(shared, place))
        if reading is not None and owners[-1] == place:
            readings.append(reading)
    return readings, owners


@dataclass(frozen=True, slots=True)
class _Reading:
    """A record as one schema id reads it. `parsed` is NULL for records of other ids.

    `renamed` is the schema under the names that columns have now, where a record is a row but for these: fields are
    written in their order, so names say nothing about bytes. With `is_flat` the end stands in the record itself: Spark
    makes new objects for a record within another.
    """

    writer: WriterRecord
    place: int
    parsed: Expression
    schema: AvroSchema
    projection: ColumnProjection
    renamed: str | None
    is_flat: bool

    def parse(self) -> Expression:
        body = call("concat", Expression(f"substring({VALUE.sql}, {HEADER.size + 1})"), _bytes(END))
        options = options_map({"mode": "PERMISSIVE"})
        text = self.renamed or self.writer.avro
        framed = ended_schema(text) if self.is_flat else framed_schema(text)
        read = call("from_avro", body, literal(framed), options)
        # Not deterministic, so that Spark neither merges it into its uses nor pushes a filter on it below.
        return when(call("monotonically_increasing_id").compared(">=", 0), when(_is_of(self.place), read))

    def problem(self) -> Expression:
        """Why there is no row: bytes that cannot be read give a record without anything in it."""
        return first_text([self.broken(), violations(self.projection, self.value)])

    def broken(self) -> Expression:
        return when(~self.is_whole(), call("concat", literal(UNREADABLE), SCHEMA_ID))

    def fits(self) -> Expression:
        """Whether there is a row."""
        return self.is_whole() & ~misfits(self.projection, self.value)

    def is_whole(self) -> Expression:
        ended = self.parsed.field(END_FIELD).compared("<=>", _bytes(END))
        return ended if self.is_flat else self.record.is_there() & ended

    def row(self) -> Expression:
        return struct(self.columns())

    def columns(self) -> list[tuple[str, Expression]]:
        return project_columns(self.projection, self.value)

    def value(self, index: int) -> Expression:
        field = _fields(self.schema)[index]
        name = field.name if self.renamed is None else self.projection.new_schema.names[index]
        return declared(field.type, self.schema, self.record.field(name))

    @property
    def record(self) -> Expression:
        return self.parsed if self.is_flat else self.parsed.field(ROW_FIELD)


@dataclass(frozen=True, slots=True)
class _Event(_Reading):
    """The same of a record that is an event, ordered by what stands at `path`: the row lies in its envelope."""

    path: str

    def problem(self) -> Expression:
        has_row = when(self._is_delete, self._before, self._after).is_there()
        rows = [lost_values(self.writer.columns, self._read, self.value), violations(self.projection, self.value)]
        event = event_reason(self._op, has_row, self._sequence, self.path)
        return first_text([self.broken(), event, when(self._op.is_one_of(WITH_ROW), first_text(rows))])

    def event(self) -> Expression:
        return event_of(self._op, self._sequence)

    def made(self) -> Iterator[tuple[Expression, str]]:
        """Values that are written otherwise than their columns have them, each once: the row and the checks use it."""
        for index, field in enumerate(self.writer.columns):
            if has_rules([field]):
                yield converted(columns_of(self.writer.columns)[index], self._read(index)), self._made(index)

    def value(self, index: int) -> Expression:
        return column(self._made(index)) if has_rules([self.writer.columns.field(index)]) else self._read(index)

    def _made(self, index: int) -> str:
        return f"{_name(self.parsed)}_{index}"

    def _read(self, index: int) -> Expression:
        field = row_record(self.schema).fields[index]
        read = when(self._is_delete, self._before.field(field.name), self._after.field(field.name))
        return declared(field.type, self.schema, read)

    @property
    def _op(self) -> Expression:
        return self.record.field(OP)

    @property
    def _is_delete(self) -> Expression:
        return self._op.compared("=", literal(DELETE))

    @property
    def _before(self) -> Expression:
        return self.record.field(BEFORE)

    @property
    def _after(self) -> Expression:
        return self.record.field(AFTER)

    @property
    def _sequence(self) -> Expression:
        if not has_path(self.schema, self.path):
            return NO_NUMBER
        found = self.record
        for name in self.path.split("."):
            found = found.field(name)
        return found.try_cast("BIGINT")


def _reading(table: DecoderTable, writer: WriterRecord, place: int) -> _Reading:
    parsed, schema = column(PARSED.format(place)), parse_avro(writer.avro)
    projection = projection_between(writer.columns, table.current)
    if table.event_order is not None:
        return _Event(writer, place, parsed, schema, projection, None, False, table.event_order)
    names = [field.name for field in _fields(schema)]
    is_flat = bool(names) and END_FIELD not in (*names, *table.current.names)
    return _Reading(writer, place, parsed, schema, projection, _renamed(writer.avro, schema, projection), is_flat)


def unreadable(writer: WriterRecord) -> str:
    """The reason of a record that Spark's reader cannot read with this schema."""
    return f"{UNREADABLE}{writer.schema_id}"


def _renamed(text: str, schema: AvroSchema, projection: ColumnProjection) -> str | None:
    fields, names = _fields(schema), projection.new_schema.names
    if len(fields) != len(names) or not keeps_every_place(projection):
        return None
    if any(differs(each.type, schema) for each in fields) or not all(map(AVRO_NAME.fullmatch, names)):
        return None
    root = json.loads(text)
    made = [{"name": name, "type": field["type"]} for field, name in zip(root["fields"], names, strict=True)]
    own = {name: root[name] for name in ("type", "name", "namespace") if name in root}
    return json.dumps({**own, "fields": made}, separators=(",", ":"))


def framed_schema(text: str) -> str:
    """A record around the writer's, written as the writer's is: NULL in it is a failure and no NULL of the writer's."""
    fields = [{"name": ROW_FIELD, "type": json.loads(text)}, END_OF_RECORD]
    return json.dumps({"type": "record", "name": "laminae_framed", "fields": fields}, separators=(",", ":"))


def ended_schema(text: str) -> str:
    """The writer's record with the end as one more field: NULL in that is a failure."""
    root = json.loads(text)
    return json.dumps({**root, "fields": [*root["fields"], END_OF_RECORD]}, separators=(",", ":"))


def frame_of() -> Expression:
    """The first bytes of a record, which are looked at under the name of FRAME."""
    return call("substring", VALUE, literal(1), literal(HEADER.size))


def framed_id() -> Expression:
    """The schema id of a record, NULL where it has no frame."""
    return when(_is_framed(), SCHEMA_ID.try_cast("INT"))


def _fields(schema: AvroSchema) -> tuple[AvroField, ...]:
    root = schema.root
    return root.fields if isinstance(root, AvroRecord) else ()


def _writer(writers: Sequence[WriterRecord], owners: Sequence[int]) -> Expression:
    """The place of a record's id among these, or of the one that reads for it; NULL: it is another id, or none.

    Each column asks for it: a number is compared sooner than bytes.
    """
    frames = [_bytes(HEADER.pack(MAGIC, writer.schema_id)) for writer in writers]
    owned = [(FRAME.compared("=", frame), literal(place)) for frame, place in zip(frames, owners, strict=True)]
    return cases([*owned, (FALSE, literal(-1))])


def _is_of(place: int) -> Expression:
    return WRITER.compared("=", place)


def _is_framed() -> Expression:
    is_whole = call("length", FRAME).compared("=", HEADER.size)
    # Ids are not below 0.
    return is_whole & _begins(MAGIC) & call("substring", FRAME, literal(2), literal(1)).compared("<", _bytes(b"\x80"))


def _begins(magic: int) -> Expression:
    return call("substring", FRAME, literal(1), literal(1)).compared("=", _bytes(bytes([magic])))


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


def _name(made: Expression) -> str:
    return made.sql.strip("`")


def _bytes(content: bytes) -> Expression:
    return Expression(f"X'{content.hex().upper()}'")


def _no_row(current: pa.Schema) -> Expression:
    kinds = ((field.name, Expression(f"CAST(NULL AS {type_sql(spark_type(field.type))})")) for field in current)
    return struct(kinds)
