"""A record behind Confluent's frame as the schema of one id reads it: its value, what is wrong with it, its row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.codec.confluent import HEADER
from laminae.schema.avro.nodes import AvroRecord
from laminae.spark.avro_values import declared
from laminae.spark.expression import Expression, call, column, first_text, literal, options_map, struct, when
from laminae.spark.project import misfits, project_columns, violations

if TYPE_CHECKING:
    from laminae.catalog.model import WriterRecord
    from laminae.schema.avro import AvroField, AvroSchema
    from laminae.schema.projection import ColumnProjection

UNREADABLE = "its bytes are no record of schema id "
VALUE, WRITER = column("value"), column("_writer")
SCHEMA_ID = call("conv", call("hex", call("substring", VALUE, literal(2), literal(4))), literal(16), literal(10))
# A record has to end where its bytes do, which `from_avro` does not look at: these are put behind it and read, too.
END = b"\xa7LAM"
ROW_FIELD, END_FIELD = "row", "laminae_end"
END_OF_RECORD = {"name": END_FIELD, "type": {"type": "fixed", "name": "laminae_end", "size": len(END)}}


@dataclass(frozen=True, slots=True)
class Reading:
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
        body = call("concat", Expression(f"substring({VALUE.sql}, {HEADER.size + 1})"), bytes_sql(END))
        options = options_map({"mode": "PERMISSIVE"})
        text = self.renamed or self.writer.avro
        framed = ended_schema(text) if self.is_flat else framed_schema(text)
        read = call("from_avro", body, literal(framed), options)
        # Not deterministic, so that Spark neither merges it into its uses nor pushes a filter on it below.
        return when(call("monotonically_increasing_id").compared(">=", 0), when(is_of(self.place), read))

    def problem(self) -> Expression:
        """Why there is no row: bytes that cannot be read give a record without anything in it."""
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
    """The reason of a record that Spark's reader cannot read with this schema."""
    return f"{UNREADABLE}{writer.schema_id}"


def framed_schema(text: str) -> str:
    """A record around the writer's, written as the writer's is: NULL in it is a failure and no NULL of the writer's."""
    fields = [{"name": ROW_FIELD, "type": json.loads(text)}, END_OF_RECORD]
    return json.dumps({"type": "record", "name": "laminae_framed", "fields": fields}, separators=(",", ":"))


def ended_schema(text: str) -> str:
    """The writer's record with the end as one more field: NULL in that is a failure."""
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
