"""Decodes Debezium events in Avro: the row, or both rows, are inside the envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.codec.debezium.avro_schema import AFTER, BEFORE, OP, has_path, row_record
from laminae.codec.debezium.json_lines import DELETE, PUT
from laminae.codec.value_encodings import has_rules
from laminae.schema.column import columns_of
from laminae.spark.catalyst.expression import FALSE, Expression, call, column, first_text, joined, literal, struct, when
from laminae.spark.formats.avro.record import Reading, name_of
from laminae.spark.formats.avro.values import declared
from laminae.spark.formats.debezium.events import (
    IN_BEFORE,
    REASONS,
    WITH_OLD,
    WITH_ROW,
    event_of,
    event_reason,
    whole_event_reason,
)
from laminae.spark.formats.projection import project_columns, violations
from laminae.spark.formats.value_decoding import converted, lost_values

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_NUMBER = Expression("CAST(NULL AS BIGINT)")


@dataclass(frozen=True, slots=True)
class Event(Reading):
    """A `Reading` of a Debezium event: the row is inside the envelope, and the number at `path` orders events."""

    path: str

    def problem(self) -> Expression:
        has_row = when(self._is_delete, self._before, self._after).is_there()
        rows = [lost_values(self.writer.columns, self._read, self.value), violations(self.projection, self.value)]
        event = event_reason(self._op, has_row, self._sequence, self.path)
        return first_text([self.broken(), event, when(self._op.is_one_of(WITH_ROW), first_text(rows))])

    def event(self) -> Expression:
        return event_of(self._op, self._sequence)

    def made(self) -> Iterator[tuple[Expression, str]]:
        """Values whose encoding differs from the column's type, converted once for both the row and the checks."""
        for index, field in enumerate(self.writer.columns):
            if has_rules([field]):
                yield converted(columns_of(self.writer.columns)[index], self._read(index)), self._made(index)

    def value(self, index: int) -> Expression:
        return column(self._made(index)) if has_rules([self.writer.columns.field(index)]) else self._read(index)

    def _made(self, index: int) -> str:
        return f"{name_of(self.parsed)}_{index}"

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
        value = self.record
        for name in self.path.split("."):
            value = value.field(name)
        return value.try_cast("BIGINT")


@dataclass(frozen=True, slots=True)
class WholeEvent(Event):
    """An `Event` of a table without a key: both `before` and `after` are decoded, or neither is."""

    def problem(self) -> Expression:
        event = whole_event_reason(self._op, self._after.is_there(), self._before.is_there(), self._sequence, self.path)
        after = [lost_values(self.writer.columns, self._read, self.value), violations(self.projection, self.value)]
        before = [lost_values(self.writer.columns, self._read_old, self._old), violations(self.projection, self._old)]
        names = [field.name for field in row_record(self.schema).fields]
        is_blank = joined("and", [self._before.field(name).is_null() for name in names], FALSE)
        old = [call("concat", literal(IN_BEFORE), first_text(before)), when(is_blank, literal(REASONS["blank"]))]
        rows = [when(self._op.is_one_of(PUT), first_text(after)), when(self._op.is_one_of(WITH_OLD), first_text(old))]
        return first_text([self.broken(), event, *rows])

    def row(self) -> Expression:
        return when(self._op.is_one_of(PUT), struct(self.columns()))

    def old(self) -> Expression:
        return when(self._op.is_one_of(WITH_OLD), struct(project_columns(self.projection, self._old)))

    def made(self) -> Iterator[tuple[Expression, str]]:
        yield from super(WholeEvent, self).made()
        for index, field in enumerate(self.writer.columns):
            if has_rules([field]):
                yield converted(columns_of(self.writer.columns)[index], self._read_old(index)), self._made_old(index)

    def _old(self, index: int) -> Expression:
        if has_rules([self.writer.columns.field(index)]):
            return column(self._made_old(index))
        return self._read_old(index)

    def _made_old(self, index: int) -> str:
        return f"{name_of(self.parsed)}_old_{index}"

    def _read(self, index: int) -> Expression:
        return self._part(self._after, index)

    def _read_old(self, index: int) -> Expression:
        return self._part(self._before, index)

    def _part(self, part: Expression, index: int) -> Expression:
        field = row_record(self.schema).fields[index]
        return declared(field.type, self.schema, part.field(field.name))
