"""Large files of JSON lines, read by Arrow in ranges of bytes: half the processor time of Spark's own reader.

One range that needs a closer look spoils the whole read, which is then made another way; see `codec/json_lines.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.json_lines import line_reader
from laminae.spark.rows import Watch
from laminae.spark.types import spark_schema
from laminae.spark.workers import pass_over, settle_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.codec.json_lines import LineReader
    from laminae.spark.logs.listing import FileEntry
    from laminae.spark.rows import WatchedRows

# Below it the start of Python workers and the plan weigh more than the records.
LEAST_BYTES = 16 << 20
CHUNK_BYTES = 8 << 20
BATCH_ROWS = 16_384
# Spark reads these by their name; a range of them is not text.
COMPRESSED = (".gz", ".bz2", ".lz4", ".snappy", ".deflate", ".zst", ".xz")


def chunked_rows(spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable) -> WatchedRows | None:
    """The rows of these files; None where this way does not suit them."""
    (newest, *others) = reversed(table.decoders)
    if others or table.version_field is not None or not newest.schema.equals(table.current, check_metadata=True):
        return None
    if sum(entry.size for entry in files) < LEAST_BYTES or any(e.path.endswith(COMPRESSED) for e in files):
        return None
    reader = line_reader(table.current)
    if reader is None:
        return None
    watch = Watch.of(spark)
    chunks = spark.createDataFrame(_chunks(files))
    return watch.rows(chunks.mapInArrow(_task(reader, watch), spark_schema(table.current)), is_bare=True)


def _chunks(files: Sequence[FileEntry]) -> pa.Table:
    found = [(e.path, start) for e in files for start in range(0, e.size, CHUNK_BYTES)]
    paths, starts = zip(*found, strict=True)
    return pa.table({"path": pa.array(paths, pa.string()), "start": pa.array(starts, pa.int64())})


def _task(reader: LineReader, watch: Watch) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        count = 0
        for batch in batches:
            for path, start in zip(batch["path"].to_pylist(), batch["start"].to_pylist(), strict=True):
                text = lines_from(path, start, start + CHUNK_BYTES)
                if not text:
                    continue
                found = reader.read(text)
                if found is None:
                    # The job is for nothing from here on.
                    watch.refuse()
                    pass_over(batches)
                    return
                count += found.num_rows
                yield from found.to_batches(BATCH_ROWS)
        watch.count(count)

    return read


def lines_from(path: str, start: int, end: int) -> bytes:
    """The lines that begin in this range of a file's bytes, whole."""
    with open(path, "rb") as file:
        if start:
            file.seek(start - 1)
            file.readline()
        place = file.tell()
        if place >= end:
            return b""
        text = file.read(end - place)
        return text if text.endswith(b"\n") else text + file.readline()
