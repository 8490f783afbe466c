"""Decodes `before` and `after` of Debezium JSON events of tables without a key.

Each is decoded as a separate record by the same decoders, `after` first; an error in either rejects the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.catalyst.expression import (
    NULL_TEXT,
    TRUE,
    Expression,
    call,
    column,
    each,
    first_text,
    literal,
    options_map,
    when,
)
from laminae.spark.formats.debezium.events import EVENT, IN_BEFORE, OLD, REASONS
from laminae.spark.formats.debezium.json import BESIDE, MESSAGE, NO_VERSION, OLD_TEXT, REFUSED, STAMP, UNTOLD
from laminae.spark.formats.json.from_json import OPTIONS
from laminae.spark.formats.json.records import json_records, wanted_by
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS, ROW, UNKNOWN, VERSION, Decoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable

NEW = {ROW: "_new", ERROR: "_new_error", UNKNOWN: "_new_unknown", VERSION: "_new_version"}
"""Names for the decoded columns of `after` while `before` is decoded."""


def whole_records(opened: DataFrame, table: DecoderTable) -> Decoded:
    """`_row`, `_old` and the error of either, from unwrapped messages (`debezium.json.opening` with `has_old_rows`)."""
    after = json_records(opened, table, (*BESIDE, OLD_TEXT, STAMP)).records
    renamed = [F.col(name).alias(NEW.get(name, name)) for name in after.columns if name not in ("value", "version")]
    version = when(column(OLD_TEXT).is_there(), column(STAMP), literal(NO_VERSION)).cast("INT")
    text = column(OLD_TEXT).cast("BINARY")
    second = after.select(*renamed, text.column.alias("value"), version.column.alias("version"))
    before = json_records(second, table, (*BESIDE, OLD_TEXT, STAMP, *NEW.values())).records
    has_new, has_old = (~column(name).compared("=", NO_VERSION) for name in (NEW[VERSION], VERSION))
    columns = {name: column(name) for name in (*RAW_COLUMNS, EVENT, UNTOLD)}
    columns |= {
        "value": column(MESSAGE),
        "version": column(STAMP),
        ROW: when(has_new, column(NEW[ROW])),
        OLD: when(has_old, column(ROW)),
        ERROR: _error(has_new, has_old),
        UNKNOWN: column(NEW[UNKNOWN]) | column(UNKNOWN) | column(UNTOLD),
        VERSION: when(has_new, column(NEW[VERSION]), column(VERSION)),
    }
    records = before.select(*(value.column.alias(name) for name, value in columns.items()))
    suspects = [part.where(F.col(VERSION) != NO_VERSION).select("value", UNKNOWN, ERROR) for part in (after, before)]
    return Decoded(records, lambda current: wanted_by(suspects[0].unionAll(suspects[1]), table, current))


def _error(has_new: Expression, has_old: Expression) -> Expression:
    """The first error. What the decoders report for a row that is absent is ignored."""
    old = call("concat", literal(IN_BEFORE), column(ERROR))
    return first_text([column(REFUSED), when(has_new, column(NEW[ERROR])), when(has_old, old), when(has_old, _blank())])


def _blank() -> Expression:
    """The error of a `before` without any value, even in undeclared columns: upstream logged no replica identity."""
    values = call("from_json", column(OLD_TEXT), literal("MAP<STRING, STRING>"), options_map(OPTIONS))
    has_value = each("exists", call("map_values", values), lambda value: value.is_there())
    return when(~call("coalesce", has_value, TRUE), literal(REASONS["blank"]), NULL_TEXT)
