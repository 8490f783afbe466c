"""Compacts several changelog files into one table under one schema, with equal rows summed. Runs no Spark job.

Without retractions the rows are copied. With retractions equal rows are combined: in memory, or, if there are many
rows, in hash partitions spilled to disk.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from laminae.schema.identity import column_ids, with_column_ids
from laminae.spark.catalyst.types import stored_schema
from laminae.trace.spec import WEIGHT
from laminae.zset.canonical import canonical
from laminae.zset.consolidate import net_weights
from laminae.zset.ordered_bits import is_text, levels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from laminae.engine.retention.changelog_compaction import Piece
    from laminae.zset.wide_integers import Int64s

BATCH_ROWS = 1 << 16
FILE_BYTES = 128 << 20
MEMORY_ROWS, MEMORY_BYTES = 1 << 18, 64 << 20
"""Limits for summing in one pass: the number of rows, and the bytes of their (compressed) files."""
MOST_PARTITIONS = 256


@dataclass(frozen=True, slots=True)
class Merged:
    """`files` are names within the output directory. `is_plain`: all weights are 1."""

    files: tuple[str, ...]
    rows: int
    is_plain: bool


def merged_schema(newest: pa.Schema, own: Sequence[str]) -> pa.Schema:
    """The schema of merged files: the columns of the newest segment, less the change columns `own`, plus `_weight`."""
    fields = [column.with_nullable(True) for column in newest if column.name not in own]
    whole = stored_schema(pa.schema([*fields, pa.field(WEIGHT, pa.int64())]))
    return with_column_ids(whole, column_ids(newest))


def merge(
    home: Path, pieces: Sequence[Piece], schema: pa.Schema, fills: Mapping[str, pa.Scalar], directory: Path
) -> Merged:
    """Write the sum of these pieces. `fills` has the values, by column id, for rows older than a column."""
    inputs = _Inputs(home, tuple(pieces), schema, fills)
    with closing(_Output(directory, schema)) as output:
        if inputs.parts == 1:
            rows = pa.Table.from_batches(inputs.batches(), schema=schema)
            is_plain = _are_plain(rows.column(WEIGHT))
            output.write(rows if is_plain else _added_up(rows))
        elif is_plain := inputs.are_plain():
            for batch in inputs.batches():
                output.write(pa.Table.from_batches([batch]))
        else:
            for rows in _partitions(inputs, directory):
                output.write(_added_up(rows))
        output.flush()
    return Merged(tuple(output.files), output.rows, is_plain)


@dataclass(frozen=True, slots=True)
class _Inputs:
    home: Path
    pieces: tuple[Piece, ...]
    schema: pa.Schema
    fills: Mapping[str, pa.Scalar]

    @property
    def parts(self) -> int:
        """The number of hash partitions of bounded size into which the rows are split for summing."""
        rows = sum(piece.rows for piece in self.pieces)
        size = sum((self.home / file).stat().st_size for piece in self.pieces for file in piece.files)
        return min(MOST_PARTITIONS, max(1, -(-rows // MEMORY_ROWS), -(-size // MEMORY_BYTES)))

    def are_plain(self) -> bool:
        files = (self.home / file for piece in self.pieces if not piece.is_plain for file in piece.files)
        return all(_are_plain(batch.column(0)) for file in files for batch in _batches(file, [WEIGHT]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        ids = column_ids(self.schema)
        for piece in self.pieces:
            names = {identity: name for name, identity in column_ids(piece.schema).items()}
            stored = {name: names.get(identity) for name, identity in ids.items()} | {WEIGHT: WEIGHT}
            for file in piece.files:
                for batch in _batches(self.home / file):
                    columns = [self._column(batch, wanted, stored[wanted.name], ids) for wanted in self.schema]
                    yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, batch: pa.RecordBatch, wanted: pa.Field, stored: str | None, ids: Mapping[str, str]) -> pa.Array:
        if stored is not None:
            column = batch.column(stored)
            return column if column.type == wanted.type else column.cast(wanted.type)
        value = self.fills.get(ids[wanted.name])
        return pa.nulls(len(batch), wanted.type) if value is None else _repeated(value, wanted.type, len(batch))


def _batches(file: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file) as opened:
        yield from opened.iter_batches(BATCH_ROWS, columns=columns)


def _repeated(value: pa.Scalar, kind: pa.DataType, count: int) -> pa.Array:
    return pa.array([value.as_py()], value.type).cast(kind).take(pa.array(np.zeros(count, dtype=np.int64)))


def _are_plain(weights: pa.Array | pa.ChunkedArray) -> bool:
    return bool((np.asarray(weights) == 1).all())


def _added_up(rows: pa.Table) -> pa.Table:
    """Combines equal rows into one with the sum of their weights; rows whose weights sum to zero are removed."""
    names = [name for name in rows.column_names if name != WEIGHT]
    groups, net = net_weights(rows, names, np.asarray(rows.column(WEIGHT)))
    left = rows.take(pa.array(groups.first[net != 0]))
    place = rows.schema.get_field_index(WEIGHT)
    return left.set_column(place, rows.schema.field(place), pa.array(net[net != 0]))


def _partitions(inputs: _Inputs, directory: Path) -> Iterator[pa.Table]:
    """All rows in hash partitions, equal rows in the same one: spilled to files, then read one partition at a time."""
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / f"spilled-{number}.arrow" for number in range(inputs.parts)]
    with ExitStack() as opened:
        writers = [opened.enter_context(pa.ipc.new_file(str(file), inputs.schema)) for file in files]
        for batch in inputs.batches():
            parts = _hashes(batch).view(np.uint64) % np.uint64(len(files))
            for number in np.unique(parts):
                writers[number].write_batch(batch.filter(pa.array(parts == number)))
    for file in files:
        with pa.ipc.open_file(str(file)) as spilled:
            yield spilled.read_all()
        file.unlink()


def _hashes(batch: pa.RecordBatch) -> Int64s:
    """Row hashes, equal for equal rows within this process only: Python randomises the hashes of strings."""
    hashes = np.zeros(len(batch), dtype=np.uint64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name != WEIGHT:
            for level in _levels(column):
                hashes = (hashes ^ level.astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
                hashes ^= hashes >> np.uint64(29)
    return hashes.view(np.int64)


def _levels(column: pa.Array) -> Iterable[Int64s]:
    if pa.types.is_nested(column.type):
        return [np.fromiter((hash(canonical(value)) for value in column.to_pylist()), np.int64, len(column))]
    if is_text(column.type):
        return [np.fromiter(map(hash, column.to_pylist()), np.int64, len(column))]
    is_there = np.asarray(pc.is_valid(column))
    # The value buffer is undefined where a value is NULL.
    return [np.where(is_there, level, 0) for level in levels(column)]


@dataclass(slots=True)
class _Output:
    """Writes files of bounded size in row groups of `BATCH_ROWS`; small batches are gathered first."""

    directory: Path
    schema: pa.Schema
    files: list[str] = field(default_factory=list)
    rows: int = 0
    _gathered: list[pa.Table] = field(default_factory=list)
    _opened: ExitStack = field(default_factory=ExitStack)
    _writer: pq.ParquetWriter | None = None
    _size: int = 0

    def write(self, rows: pa.Table) -> None:
        for start in range(0, rows.num_rows, BATCH_ROWS):
            self._gathered.append(rows.slice(start, BATCH_ROWS))
            if sum(table.num_rows for table in self._gathered) >= BATCH_ROWS:
                self.flush()

    def flush(self) -> None:
        """Write the gathered batches as one row group."""
        if not self._gathered:
            return
        rows = pa.concat_tables(self._gathered)
        self._gathered.clear()
        if self._writer is None or self._size > FILE_BYTES:
            self._writer = self._begun()
        self._writer.write_table(rows)
        self._size += rows.nbytes
        self.rows += rows.num_rows

    def close(self) -> None:
        self._opened.close()

    def _begun(self) -> pq.ParquetWriter:
        self.close()
        self.directory.mkdir(parents=True, exist_ok=True)
        name = f"{len(self.files):05}.parquet"
        file = self._opened.enter_context((self.directory / name).open("xb"))
        self._size = 0
        self.files.append(name)
        # The same Parquet settings as those of segments.
        settings = {"compression": "snappy", "use_dictionary": False, "write_statistics": False}
        return self._opened.enter_context(pq.ParquetWriter(file, self.schema, **settings))
