"""Alter the table to fit the rows of an epoch, in the transaction that writes them, or report the needed statements.

Without `evolve = 'auto'` no existing column is altered: the sink stops at the epoch that does not fit, its error lists
the statements to run, and it continues once they have been run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from laminae.engine.definitions.sink_names import refuse_names
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import InvalidOption, SinkTableOutdated
from laminae.schema.identity import column_ids
from laminae.spark.sinks.identity import identity_of
from laminae.spark.sinks.postgres import table as statements
from laminae.spark.sinks.postgres.alterations import Alterations, WantedColumn, alterations
from laminae.spark.sinks.postgres.known_columns import NAME, KnownColumns
from laminae.spark.sinks.postgres.type_capacity import canonical
from laminae.spark.sinks.postgres.types import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from psycopg import sql

    from laminae.catalog.model import SinkRecord
    from laminae.net.postgres import Connection
    from laminae.spark.sinks.postgres.table import Table
    from laminae.spark.sinks.segment import Segment


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table that has every column of the rows. `narrow` are columns too narrow for some values, with a wider type."""

    connection: Connection
    table: Table
    sink: SinkRecord
    names: list[str]
    narrow: Sequence[tuple[str, str]] = ()

    def write(self, work: Callable[[], None]) -> None:
        """Do the work. If a column's definition makes PostgreSQL reject a row, alter it or raise with the remedy.

        Only NOT NULL is altered here, and only with `evolve = 'auto'`; then the work is repeated.
        """
        while True:
            try:
                with self.connection.transaction():
                    work()
            except psycopg.errors.NotNullViolation as error:
                self._allow_null(error)
            except psycopg.DataError as error:
                if not self.narrow:
                    raise
                retypes = [statements.retyping(self.table, *column) for column in self.narrow]
                raise outdated(self.sink, self.table, str(error).splitlines()[0], retypes) from error
            else:
                return

    def _allow_null(self, error: psycopg.errors.NotNullViolation) -> None:
        column = error.diag.column_name
        if column is None:
            raise error
        statement = statements.without_not_null(self.table, column)
        if not _evolves(self.sink):
            problem = f"column {column} is NOT NULL there, and a row has no value for it"
            raise outdated(self.sink, self.table, problem, [statement]) from error
        self.connection.execute(statement)


def fit(
    connection: Connection, table: Table, segment: Segment, schema: pa.Schema, key: Sequence[str], sink: SinkRecord
) -> FittedTable:
    """Create or alter the table so that it has all columns of the schema, matched by column id."""
    refuse_names(sink.name, "postgres", None, tuple(schema.names), key)
    ids = column_ids(schema)
    wanted = [WantedColumn(field.name, canonical(type_name(field, sink.name)), ids.get(field.name)) for field in schema]
    known_columns = KnownColumns(connection, table.beside(NAME), table, identity_of(sink))
    present = table.described(connection)
    planned = Alterations()
    if not present:
        _create(connection, table, schema, key, sink)
    else:
        planned = alterations(wanted, present, *known_columns.read(segment.relation_id))
        _alter(connection, table, segment, schema, planned, sink)
    known_columns.write(segment.relation_id, wanted, table.described(connection))
    return FittedTable(connection, table, sink, list(schema.names), () if _evolves(sink) else planned.retypes)


def outdated(sink: SinkRecord, table: Table, problem: str, changes: Sequence[sql.Composed]) -> SinkTableOutdated:
    location = f"table {table.name.as_string(None)}"
    text = " ".join(f"{change.as_string(None)};" for change in changes)
    return SinkTableOutdated(sink=sink.name, location=location, problem=problem, statements=text)


def _create(connection: Connection, table: Table, schema: pa.Schema, key: Sequence[str], sink: SinkRecord) -> None:
    statement = statements.creation(table, list(schema), tuple(key), sink.name)
    if option(sink.options, "create_table", SINK_OPTIONS) != "true":
        name = table.name.as_string(None)
        advice = (
            f"Run in the database: {statement.as_string(None)}; -- delivery then starts. "
            "A sink with create_table = 'true' creates its table itself."
        )
        problem = f"it is false, and there is no table {name}"
        raise InvalidOption(option="create_table", owner=sink.name, problem=problem, advice=advice)
    connection.execute(statement)


def _alter(
    connection: Connection, table: Table, segment: Segment, schema: pa.Schema, planned: Alterations, sink: SinkRecord
) -> None:
    fields = {field.name: field for field in schema}
    fills = {name: segment.fills[id_] for name, id_ in column_ids(schema).items() if id_ in segment.fills}
    adds = option(sink.options, "add_columns", SINK_OPTIONS) == "true"
    if not _evolves(sink) and (planned.renames or planned.lossy or (planned.additions and not adds)):
        changes = statements.altering(table, planned, fields, fills, sink.name)
        raise outdated(sink, table, _difference(planned), changes)
    allowed = planned if _evolves(sink) else Alterations(additions=planned.additions)
    for statement in statements.altering(table, allowed, fields, fills, sink.name):
        connection.execute(statement)


def _difference(planned: Alterations) -> str:
    """How the table differs from the relation, as text."""
    parts = [f"column {old} must be renamed to {new}" for old, new in planned.renames]
    parts += [f"it has no column {column.name}" for column in planned.additions]
    parts += [f"column {name} would round values, which need {kind}" for name, kind in planned.lossy]
    return "; ".join(parts)


def _evolves(sink: SinkRecord) -> bool:
    return option(sink.options, "evolve", SINK_OPTIONS) == "auto"
