"""Deliver one epoch in one transaction: stage the rows, merge them by key, record the epoch, commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from laminae.engine import faults
from laminae.engine.definitions.sinks import APPEND
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import InvalidOption, SinkUnavailable
from laminae.net.postgres import error_text
from laminae.spark.sinks.identity import identity_of
from laminae.spark.sinks.modes import OWN, mode_of, parts_of
from laminae.spark.sinks.postgres import begins_again
from laminae.spark.sinks.postgres import table as statements
from laminae.spark.sinks.postgres.progress import NAME, NOTHING_YET, Progress
from laminae.spark.sinks.postgres.schema_alignment import fit
from laminae.spark.sinks.postgres.table import Table, table_of
from laminae.spark.sinks.postgres.types import copied
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.model import SinkRecord
    from laminae.net.postgres import Connection, PostgresSettings
    from laminae.spark.sinks.segment import Segment


def deliver(segment: Segment, sink: SinkRecord, settings: PostgresSettings) -> None:
    """Deliver the segment, unless its epoch is already recorded in the database."""
    table = _table(sink)
    with _transaction(sink, table, settings) as connection:
        progress = Progress(connection, table.beside(NAME), identity_of(sink))
        if segment.epoch <= progress.lock():
            return
        if mode_of(sink) == APPEND:
            _append(connection, table, segment, sink)
        else:
            for shape in segment.shapes():
                _merge(connection, table, shape, sink)
        progress.record(segment.epoch)
    faults.reach("transaction committed")


def take_back(sink: SinkRecord, settings: PostgresSettings, after: int) -> None:
    """Empty the table: deliveries cannot be undone row by row, and the sink starts again with a snapshot.

    If the sink does not start with a snapshot, the rows of rewound epochs stay in the table.
    """
    table = _table(sink)
    with _transaction(sink, table, settings) as connection:
        progress = Progress(connection, table.beside(NAME), identity_of(sink))
        if progress.lock() > NOTHING_YET and begins_again(sink):
            connection.execute(statements.emptying(table))
            progress.record(NOTHING_YET)


def _merge(connection: Connection, table: Table, segment: Segment, sink: SinkRecord) -> None:
    key = segment.key or ()
    fitted = fit(connection, table, segment, _columns(segment), key, sink)

    def write() -> None:
        names = fitted.names
        connection.execute(statements.staging(table, names))
        has_null_keys = False
        with connection.cursor() as cursor, cursor.copy(statements.copying(names)) as copy:
            for batch in _batches(segment, sink):
                copy.write(copied(_marked(batch), (*names, OP), sink.name))
                has_null_keys |= any(batch.column(name).null_count for name in key)
        faults.reach("rows staged")
        connection.execute(statements.deletion(table, key))
        if has_null_keys:
            connection.execute(statements.deletion_of_null_keys(table, key))
        connection.execute(statements.merging(table, names, key))
        connection.execute(statements.unstaging())

    fitted.write(write)
    faults.reach("rows merged")


def _append(connection: Connection, table: Table, segment: Segment, sink: SinkRecord) -> None:
    fitted = fit(connection, table, segment, _columns(segment), (), sink)

    def write() -> None:
        with connection.cursor() as cursor, cursor.copy(statements.copying(fitted.names, table)) as copy:
            for batch in _batches(segment, sink):
                copy.write(copied(batch, fitted.names, sink.name))

    fitted.write(write)
    faults.reach("rows merged")


def _columns(segment: Segment) -> pa.Schema:
    """The segment's schema without the changelog columns."""
    return pa.schema([field for field in segment.schema if field.name not in OWN], metadata=segment.schema.metadata)


def _batches(segment: Segment, sink: SinkRecord) -> Iterator[pa.RecordBatch]:
    return (batch for part in parts_of(segment, sink) for batch in part)


def _marked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Replace `_op` by a boolean: true if the row is to be deleted."""
    return batch.set_column(batch.schema.get_field_index(OP), OP, pc.starts_with(batch.column(OP), "-"))


def _table(sink: SinkRecord) -> Table:
    name = option(sink.options, "table", SINK_OPTIONS)
    if name is None:
        advice = "Give table = 'name' or 'schema.name'."
        raise InvalidOption(option="table", owner=sink.name, problem="it is missing", advice=advice)
    return table_of(name, sink.name)


@contextmanager
def _transaction(sink: SinkRecord, table: Table, settings: PostgresSettings) -> Iterator[Connection]:
    """A transaction that is committed at the end of the body and rolled back if it raises."""
    try:
        with settings.connect(autocommit=False) as connection:
            yield connection
    except psycopg.Error as error:
        location = f"table {table.name.as_string(None)} of {settings.address}"
        raise SinkUnavailable(sink=sink.name, location=location, problem=error_text(error)) from error
