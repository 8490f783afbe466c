"""A record in the Confluent wire format, decoded with the schema of one id: its values, its error, its row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.codec.confluent import HEADER
from laminae.schema.avro.nodes import AvroRecord
from laminae.spark.catalyst.expression import Expression, call, column, first_text, literal, options_map, struct, when
from laminae.spark.formats.avro.values import declared
from laminae.spark.formats.projection import misfits, project_columns, violations

if TYPE_CHECKING:
    from laminae.catalog.model import WriterRecord
    from laminae.schema.avro import AvroField, AvroSchema
    from laminae.schema.projection import ColumnProjection

UNREADABLE = "its bytes do not match schema id "
VALUE, WRITER = column("value"), column("_writer")
SCHEMA_ID = call("conv", call("hex", call("substring", VALUE, literal(2), literal(4))), literal(16), literal(10))
# A record must end where its bytes end, but `from_avro` does not check this: these bytes are appended to the record and
# decoded with it.
END = b"\xa7LAM"
ROW_FIELD, END_FIELD = "row", "laminae_end"
END_OF_RECORD = {"name": END_FIELD, "type": {"type": "fixed", "name": "laminae_end", "size": len(END)}}


@dataclass(frozen=True, slots=True)
class Reading:
    """A record decoded with the schema of one id. `parsed` is NULL for records of other ids.

    `renamed` is the writer schema with the current column names, if a record differs from its row only in names: Avro
    encodes fields in order, so names do not affect the bytes. With `is_flat` the end marker is a field of the record
    itself instead of a wrapper record: Spark allocates new objects for a nested record.
    """

    writer: WriterRecord
    place: int
    parsed: Expression
    schema: AvroSchema
    projection: ColumnProjection
    renamed: str | None
    is_flat: bool

    def parse(self) -> Expression:
        body = call("concat", Expression(f"substring({VALUE.sql}, {HEADER.size + 1})"), bytes_sql(END))
        options = options_map({"mode": "PERMISSIVE"})
        text = self.renamed or self.writer.avro
        framed = ended_schema(text) if self.is_flat else framed_schema(text)
        read = call("from_avro", body, literal(framed), options)
        # Non-deterministic, so that Spark neither inlines it where it is used nor pushes a filter on it below it.
        return when(call("monotonically_increasing_id").compared(">=", 0), when(is_of(self.place), read))

    def problem(self) -> Expression:
        """Why there is no row. Bytes that cannot be decoded yield a record in which every field is NULL."""
        return first_text([self.broken(), violations(self.projection, self.value)])

    def broken(self) -> Expression:
        return when(~self.is_whole(), call("concat", literal(UNREADABLE), SCHEMA_ID))

    def fits(self) -> Expression:
        """Whether there is a row."""
        return self.is_whole() & ~misfits(self.projection, self.value)

    def is_whole(self) -> Expression:
        ended = self.parsed.field(END_FIELD).compared("<=>", bytes_sql(END))
        return ended if self.is_flat else self.record.is_there() & ended

    def row(self) -> Expression:
        return struct(self.columns())

    def columns(self) -> list[tuple[str, Expression]]:
        return project_columns(self.projection, self.value)

    def value(self, index: int) -> Expression:
        field = fields_of(self.schema)[index]
        name = field.name if self.renamed is None else self.projection.new_schema.names[index]
        return declared(field.type, self.schema, self.record.field(name))

    @property
    def record(self) -> Expression:
        return self.parsed if self.is_flat else self.parsed.field(ROW_FIELD)


def unreadable(writer: WriterRecord) -> str:
    """The error of a record that Spark's reader cannot decode with this schema."""
    return f"{UNREADABLE}{writer.schema_id}"


def framed_schema(text: str) -> str:
    """A record around the writer's, with the same encoding. NULL in it is a decoding failure, not a written NULL."""
    fields = [{"name": ROW_FIELD, "type": json.loads(text)}, END_OF_RECORD]
    return json.dumps({"type": "record", "name": "laminae_framed", "fields": fields}, separators=(",", ":"))


def ended_schema(text: str) -> str:
    """The writer's record with the end marker as one more field. NULL in that field is a decoding failure."""
    root = json.loads(text)
    return json.dumps({**root, "fields": [*root["fields"], END_OF_RECORD]}, separators=(",", ":"))


def fields_of(schema: AvroSchema) -> tuple[AvroField, ...]:
    root = schema.root
    return root.fields if isinstance(root, AvroRecord) else ()


def is_of(place: int) -> Expression:
    return WRITER.compared("=", place)


def name_of(made: Expression) -> str:
    return made.sql.strip("`")


def bytes_sql(content: bytes) -> Expression:
    return Expression(f"X'{content.hex().upper()}'")
