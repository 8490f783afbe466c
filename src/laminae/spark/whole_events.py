"""Both rows of Debezium's events in JSON: each is read as a record of its own, and refused with the other.

For tables without a key. The row before an event passes through the same decoders behind the row after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.change_events import EVENT, IN_BEFORE, OLD, REASONS
from laminae.spark.contract import ERROR, RAW_COLUMNS, ROW, UNKNOWN, VERSION, Decoded
from laminae.spark.envelopes import BESIDE, MESSAGE, NO_VERSION, OLD_TEXT, REFUSED, STAMP, UNTOLD
from laminae.spark.expression import (
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
from laminae.spark.json_records import json_records, wanted_by
from laminae.spark.reading import OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable

NEW = {ROW: "_new", ERROR: "_new_error", UNKNOWN: "_new_unknown", VERSION: "_new_version"}
"""What was found of the row after an event, while the one before it is read."""


def whole_records(opened: DataFrame, table: DecoderTable) -> Decoded:
    """Of opened messages (`envelopes.opening` with old rows): `_row`, `_old`, and the reason against either."""
    after = json_records(opened, table, (*BESIDE, OLD_TEXT, STAMP)).records
    renamed = [F.col(name).alias(NEW.get(name, name)) for name in after.columns if name not in ("value", "version")]
    version = when(column(OLD_TEXT).is_there(), column(STAMP), literal(NO_VERSION)).cast("INT")
    text = column(OLD_TEXT).cast("BINARY")
    second = after.select(*renamed, text.column.alias("value"), version.column.alias("version"))
    before = json_records(second, table, (*BESIDE, OLD_TEXT, STAMP, *NEW.values())).records
    has_new, has_old = (~column(name).compared("=", NO_VERSION) for name in (NEW[VERSION], VERSION))
    told = {name: column(name) for name in (*RAW_COLUMNS, EVENT, UNTOLD)}
    told |= {
        "value": column(MESSAGE),
        "version": column(STAMP),
        ROW: when(has_new, column(NEW[ROW])),
        OLD: when(has_old, column(ROW)),
        ERROR: _error(has_new, has_old),
        UNKNOWN: column(NEW[UNKNOWN]) | column(UNKNOWN) | column(UNTOLD),
        VERSION: when(has_new, column(NEW[VERSION]), column(VERSION)),
    }
    records = before.select(*(value.column.alias(name) for name, value in told.items()))
    suspects = [part.where(F.col(VERSION) != NO_VERSION).select("value", UNKNOWN, ERROR) for part in (after, before)]
    return Decoded(records, lambda current: wanted_by(suspects[0].unionAll(suspects[1]), table, current))


def _error(has_new: Expression, has_old: Expression) -> Expression:
    """Of a row that is not there the decoders say nothing that matters."""
    old = call("concat", literal(IN_BEFORE), column(ERROR))
    return first_text([column(REFUSED), when(has_new, column(NEW[ERROR])), when(has_old, old), when(has_old, _blank())])


def _blank() -> Expression:
    """Whether the text has no value at all, also in columns that nobody declared: no identity was written down."""
    values = call("from_json", column(OLD_TEXT), literal("MAP<STRING, STRING>"), options_map(OPTIONS))
    found = each("exists", call("map_values", values), lambda value: value.is_there())
    return when(~call("coalesce", found, TRUE), literal(REASONS["blank"]), NULL_TEXT)
