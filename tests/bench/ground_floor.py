"""Figures of the schema engine, the parser, the Avro check and the catalog."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import laminae as lm
from laminae.schema.column import columns_of
from laminae.schema.diff import diff_columns
from laminae.schema.projection import projection_between
from laminae.sql import parse
from tests.bench.measure import Figure, ratio, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 1_000_000


def wide(columns: int, *, evolved: bool = False) -> pa.Schema:
    """A schema of INT columns with ids; `evolved`: the sixth widened and one added."""
    fields = [
        pa.field(f"c{i}", pa.int64() if evolved and i == 5 else pa.int32(), metadata={"laminae:id": str(i + 1)})
        for i in range(columns)
    ]
    return pa.schema([*fields, pa.field("added", pa.string())] if evolved else fields)


def figures() -> Iterator[Figure]:
    old, new = wide(100), wide(100, evolved=True)
    first = _computed(old, new)
    told = f"one widened, one added; asked again, as for every batch (computed anew: {first * 1e6:.1f} us)"
    yield Figure("diff of two 100-column schemas", seconds(lambda: lm.diff_schemas(old, new)) * 1e6, 10, "us", told)
    growth = _computed(wide(10_000), wide(10_000, evolved=True)) / first
    yield Figure(
        "the same, 10,000 columns", growth, 100, "x", "computed anew, times that of 100 columns; 100 is linear"
    )
    judged = seconds(lambda: lm.evaluate_evolution(new, [old], "FULL"))
    yield Figure("evaluate", judged * 1e6, 20, "us", "the same pair under FULL, diff included")
    yield _history()
    statement = "ALTER SOURCE orders ADD COLUMN currency STRING DEFAULT 'EUR' AFTER amount"
    yield Figure("one DDL statement", seconds(lambda: parse(statement)) * 1e6, 100, "us", statement)
    yield _avro()
    yield _projection()


def _computed(old: pa.Schema, new: pa.Schema) -> float:
    """The diff itself, without the memory of earlier answers."""
    a, b = columns_of(old), columns_of(new)
    return seconds(lambda: diff_columns.__wrapped__(a, b))


def _history() -> Figure:
    with tempfile.TemporaryDirectory() as home, lm.connect(home) as db:
        db.sql("CREATE SOURCE s (a INT)")
        for _ in range(333):
            db.sql(
                "ALTER SOURCE s ADD COLUMN c STRING; ALTER SOURCE s RENAME COLUMN c TO d; ALTER SOURCE s DROP COLUMN d"
            )
        assert len(db.history("s")) == 1000
        return Figure(
            "history of 1,000 versions", seconds(lambda: db.history("s")) * 1e3, 1, "ms", "db.history, SQLite"
        )


def _avro() -> Figure:
    kinds: list[object] = ["int", "long", "string", ["null", "double"], {"type": "array", "items": "string"}]
    fields = [{"name": f"f{i}", "type": kinds[i % len(kinds)]} for i in range(50)]
    old: dict[str, object] = {"type": "record", "name": "R", "fields": fields}
    new: dict[str, object] = {
        "type": "record",
        "name": "R",
        "fields": [*fields[:49], {"name": "g", "type": "int", "default": 0}],
    }
    return Figure(
        "check_avro, 50 fields", seconds(lambda: lm.check_avro(new, [old])) * 1e3, 1, "ms", "dicts, parsed each time"
    )


def _projection() -> Figure:
    old = pa.schema([pa.field(f"c{i}", pa.int32() if i % 2 else pa.float64()) for i in range(20)])
    new = pa.schema([*(f if f.name != "c1" else pa.field("c1", pa.int64()) for f in old), pa.field("n", pa.int64())])
    values = np.arange(ROWS)
    batch = pa.RecordBatch.from_arrays([pa.array(values).cast(f.type) for f in old], schema=old)
    projection = projection_between(old, new)
    taken = ratio(
        lambda: projection.project_batch(batch),
        lambda: (pc.cast(batch.column(1), pa.int64()), pa.nulls(ROWS, pa.int64())),
    )
    return Figure("projecting 1M rows of 20 columns", taken, 2, "x", "one widened, one added; against the bare casts")
