"""A run: an immutable Arrow IPC file with one record batch, sorted by `_hash`. Encoding and decoding of its bytes.

The file describes itself (`laminae:run` in the schema's metadata); its checksum is in the manifest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.errors import NewerHome, RunDamaged
from laminae.trace.evolution import projection_onto
from laminae.trace.spec import HASH, WEIGHT, TraceSpec
from laminae.zset.comparison import integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.schema.projection import ColumnProjection
    from laminae.zset.wide_integers import Int64s

RUN_FORMAT = 1
RUN = b"laminae:run"


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """An opened run. `hashes` and `weights` are zero-copy views of the file's memory."""

    path: str
    batch: pa.RecordBatch
    hashes: Int64s
    weights: Int64s
    # The projection to the spec requested last: an epoch requests the same one repeatedly.
    _last: list[tuple[pa.Schema, ColumnProjection | None]] = field(default_factory=list)

    @classmethod
    def of(cls, path: str, batch: pa.RecordBatch) -> Run:
        return cls(path, batch, integers(batch.column(HASH)), integers(batch.column(WEIGHT)))

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, spec: TraceSpec, places: Int64s, names: Sequence[str]) -> list[pa.Array]:
        """These columns of these rows, projected to `spec`."""
        rows, projection = pa.array(places), self._projection(spec)
        if projection is None:
            return [self.batch.column(name).take(rows) for name in names]
        projected = projection.project_batch(self.batch.take(rows))
        return [projected.column(name) for name in names]

    def slice(self, spec: TraceSpec, begin: int, end: int) -> pa.RecordBatch:
        """A contiguous range of whole rows, projected to `spec`."""
        rows, projection = self.batch.slice(begin, end - begin), self._projection(spec)
        return rows if projection is None else projection.project_batch(rows)

    def _projection(self, spec: TraceSpec) -> ColumnProjection | None:
        if self._last and self._last[0][0] is spec.schema:
            return self._last[0][1]
        projection = projection_onto(spec, self.batch.schema, self.path)
        self._last[:] = [(spec.schema, projection)]
        return projection


def with_facts(spec: TraceSpec, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with schema metadata that makes the file self-describing."""
    hashes = integers(batch.column(HASH))
    facts = {
        "format": RUN_FORMAT,
        "trace": spec.name,
        "discipline": spec.discipline.value,
        "keys": spec.keys,
        "values": spec.values,
        "payload": spec.payload,
        "rows": batch.num_rows,
        "min_hash": int(hashes[0]),
        "max_hash": int(hashes[-1]),
    }
    return batch.replace_schema_metadata({RUN: json.dumps(facts)})


def read_run(path: str, source: pa.Buffer | pa.NativeFile) -> Run:
    """Decode a run. Raises `RunDamaged` or `NewerHome`, with the path of the file."""
    try:
        reader = pa.ipc.open_file(source)
        facts = json.loads((reader.schema.metadata or {}).get(RUN, b"{}"))
        if facts.get("format", 0) > RUN_FORMAT:
            raise NewerHome(location=path, found=facts["format"], known=RUN_FORMAT)
        if "format" not in facts or reader.num_record_batches != 1:
            raise RunDamaged(file=path, problem="it is an Arrow file, but not a run")
        batch = reader.get_batch(0).replace_schema_metadata(None)
        run = Run.of(path, batch)
    except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
        raise RunDamaged(file=path, problem=f"it cannot be read: {problem}") from None
    if len(run) != facts["rows"] or not _is_sorted(run.hashes, facts["min_hash"], facts["max_hash"]):
        raise RunDamaged(file=path, problem="its rows do not match those it was written with")
    return run


def _is_sorted(hashes: Int64s, first: int, last: int) -> bool:
    """Checks the first and last hash only: the checksum covers what is between them."""
    return len(hashes) > 0 and int(hashes[0]) == first and int(hashes[-1]) == last


def dead_rows(spec: TraceSpec, batch: pa.RecordBatch) -> int:
    """Count rows that delete (weight 0) or cancel (negative weight) others: a bound on the dead rows of older runs."""
    return 0 if spec.keeps_tombstones else int(np.count_nonzero(integers(batch.column(WEIGHT)) <= 0))
