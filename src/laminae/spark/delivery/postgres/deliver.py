"""One epoch into the table, in one transaction: stage the rows, merge them by key, write down the epoch, commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from laminae.catalog.postgres import shown_address, words_of
from laminae.engine import faults
from laminae.engine.options import SINK_OPTIONS, option
from laminae.engine.sinks import APPEND
from laminae.errors import InvalidOption, SinkUnavailable
from laminae.spark.delivery.identity import identity_of
from laminae.spark.delivery.modes import OWN, mode_of, parts_of
from laminae.spark.delivery.postgres import begins_again
from laminae.spark.delivery.postgres import table as statements
from laminae.spark.delivery.postgres.progress import NAME, NOTHING_YET, Progress
from laminae.spark.delivery.postgres.table import Table, table_of
from laminae.spark.delivery.postgres.types import copied
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.postgres.table import Connection
    from laminae.spark.delivery.segment import Segment

# A server that has gone without a word must not keep the other sinks waiting.
PATIENCE = {"tcp_user_timeout": 30_000}
LOCK_TIMEOUT = b"SET LOCAL lock_timeout = '10s'"


def deliver(segment: Segment, sink: SinkRecord, parameters: dict[str, Any]) -> None:
    """Nothing is done when the table has the epoch already."""
    table = _table(sink)
    with _transaction(sink, table, parameters) as connection:
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


def take_back(sink: SinkRecord, parameters: dict[str, Any], after: int) -> None:
    """Empty the table: its rows cannot be undone one by one, and the sink begins again with a snapshot.

    Where it does not begin with one, rows of epochs that are no more stay.
    """
    table = _table(sink)
    with _transaction(sink, table, parameters) as connection:
        progress = Progress(connection, table.beside(NAME), identity_of(sink))
        if progress.lock() > NOTHING_YET and begins_again(sink):
            connection.execute(statements.emptying(table))
            progress.record(NOTHING_YET)


def _merge(connection: Connection, table: Table, segment: Segment, sink: SinkRecord) -> None:
    key = segment.key or ()
    first, batches = _begun(segment, sink)
    names = _prepared(connection, table, first, key, sink)
    connection.execute(statements.staging(table, names))
    has_null_keys = False
    with connection.cursor() as cursor, cursor.copy(statements.copying(names)) as copy:
        for batch in batches:
            copy.write(copied(_marked(batch), (*names, OP), sink.name))
            has_null_keys |= any(batch.column(name).null_count for name in key)
    faults.reach("rows staged")
    connection.execute(statements.deletion(table, key))
    if has_null_keys:
        connection.execute(statements.deletion_of_null_keys(table, key))
    connection.execute(statements.merging(table, names, key))
    connection.execute(statements.unstaging())
    faults.reach("rows merged")


def _append(connection: Connection, table: Table, segment: Segment, sink: SinkRecord) -> None:
    first, batches = _begun(segment, sink)
    names = _prepared(connection, table, first, (), sink)
    with connection.cursor() as cursor, cursor.copy(statements.copying(names, table)) as copy:
        for batch in batches:
            copy.write(copied(batch, names, sink.name))
    faults.reach("rows merged")


def _begun(segment: Segment, sink: SinkRecord) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of the rows as the segment knows them, and the rows."""
    fields = [field for field in segment.schema if field.name not in OWN]
    return pa.schema(fields), (batch for part in parts_of(segment, sink) for batch in part)


def _marked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With the operation of each row as the answer to whether it goes."""
    return batch.set_column(batch.schema.get_field_index(OP), OP, pc.starts_with(batch.column(OP), "-"))


def _prepared(
    connection: Connection, table: Table, schema: pa.Schema, key: Iterable[str], sink: SinkRecord
) -> list[str]:
    """The columns to write, all of which the table has from here on."""
    present = table.columns(connection)
    missing = [field for field in schema if field.name not in present]
    if not present:
        _refuse_unless(sink, "create_table", f"there is no table {table.name.as_string(None)}")
        connection.execute(statements.creation(table, list(schema), tuple(key), sink.name))
    elif missing:
        names = ", ".join(field.name for field in missing)
        _refuse_unless(sink, "add_columns", f"table {table.name.as_string(None)} has no column {names}")
        connection.execute(statements.addition(table, missing, sink.name))
    return list(schema.names)


def _refuse_unless(sink: SinkRecord, name: str, problem: str) -> None:
    if option(sink.options, name, SINK_OPTIONS) != "true":
        advice = f"Make it in the database, and the sink goes on; a sink with {name} = 'true' makes it itself."
        raise InvalidOption(option=name, owner=sink.name, problem=f"it is false, and {problem}", advice=advice)


def _table(sink: SinkRecord) -> Table:
    given = option(sink.options, "table", SINK_OPTIONS)
    if given is None:
        advice = "Give table = 'name' or 'schema.name'."
        raise InvalidOption(option="table", owner=sink.name, problem="it is missing", advice=advice)
    return table_of(given, sink.name)


@contextmanager
def _transaction(sink: SinkRecord, table: Table, parameters: dict[str, Any]) -> Iterator[Connection]:
    """Committed at the end of the body, undone when it raises."""
    try:
        with psycopg.connect(**{**PATIENCE, **parameters}) as connection:
            # By name: under a stricter default of the server, a writer that waited for another would fail.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            connection.execute(LOCK_TIMEOUT)
            yield connection
    except psycopg.Error as error:
        location = f"table {table.name.as_string(None)} of {shown_address(parameters)}"
        raise SinkUnavailable(sink=sink.name, location=location, problem=words_of(error)) from error
