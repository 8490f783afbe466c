"""The effect of a segment on a sink's table: rows to insert and, in upsert mode, the keys whose rows to delete."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laminae.engine.definitions.sinks import UPSERT
from laminae.spark.catalyst.types import microseconds_of
from laminae.spark.sinks.modes import OWN, changes_of, mode_of, parts_of
from laminae.zset import CdcOperation
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """`rows` are inserted or, with a key, upserted. `gone` are deleted keys, `key` their columns; None for append."""

    rows: pa.Table
    gone: pa.Table | None = None

    @property
    def key(self) -> list[str] | None:
        return None if self.gone is None else list(self.gone.column_names)

    @property
    def is_empty(self) -> bool:
        return not self.rows.num_rows and not (self.gone is not None and self.gone.num_rows)


def segment_rows(segment: Segment, sink: SinkRecord) -> SegmentRows:
    if mode_of(sink) != UPSERT:
        parts = [pa.Table.from_batches([batch]) for batch in chain.from_iterable(parts_of(segment, sink))]
        return SegmentRows(_storable(pa.concat_tables(parts, promote_options="default")))
    *former, last = (_upserted(shape, sink, list(segment.key or ())) for shape in segment.shapes())
    return _behind(former[0], last) if former else last


def _upserted(segment: Segment, sink: SinkRecord, key: list[str]) -> SegmentRows:
    changes = pa.Table.from_batches(changes_of(segment, sink))
    comes = pc.not_equal(changes.column(OP), CdcOperation.DELETE.value)
    rows = changes.drop_columns([name for name in OWN if name in changes.column_names])
    return SegmentRows(_storable(rows.filter(comes)), rows.filter(pc.invert(comes)).select(key))


def _behind(former: SegmentRows, last: SegmentRows) -> SegmentRows:
    """Delete the rows of a replaced view, except for keys that have a new row: the new row overwrites the old one."""
    assert former.gone is not None  # both have the key
    assert last.gone is not None
    new_keys = {tuple(row.values()) for row in last.rows.select(former.gone.column_names).to_pylist()}
    stays_gone = [tuple(row.values()) not in new_keys for row in former.gone.to_pylist()]
    gone = former.gone.filter(pa.array(stays_gone, pa.bool_())).cast(last.gone.schema)
    return SegmentRows(last.rows, pa.concat_tables([last.gone, gone]))


def sink_key(sink: SinkRecord) -> str:
    """The id under which a table stores the sink's progress. A sink that is dropped and recreated gets a new one."""
    return f"laminae.{sink.name}.{microseconds_of(sink.created_at)}"


def _storable(rows: pa.Table) -> pa.Table:
    """Drop columns whose type is not known yet: they contain only NULLs."""
    return rows.drop_columns([field.name for field in rows.schema if pa.types.is_null(field.type)])
