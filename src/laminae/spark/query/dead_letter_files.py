"""Dead letters read from their files, one page at a time, without Spark: a person waits for the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from laminae.errors import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laminae.catalog.port import Catalog

LETTERS = pa.schema(
    [
        ("epoch", pa.int64()), ("partition", pa.string()), ("offset", pa.int64()), ("value", pa.binary()),
        ("version", pa.int32()), ("reason", pa.string()), ("timestamp", pa.timestamp("us", "UTC")),
        ("replayed_by", pa.int64()), ("view_name", pa.string()), ("weight", pa.int64()),
    ]
)  # fmt: skip


def letters_of(catalog: Catalog, home: Path | None, source: str, wanted: range) -> pa.Table:
    """The rows of `laminar_catalog.dead_letters` of this source, by epoch; `wanted` is the range of rows, from 0."""
    if home is None:
        raise NotAvailable(
            feature="A page of dead letters",
            problem="the files of this home are not on a local or mounted file system",
            advice="Select from laminar_catalog.dead_letters with LIMIT.",
        )
    parts, position = [pa.Table.from_batches([], schema=LETTERS)], 0
    for epoch, files, constants in sorted(_segments(catalog, home, source), key=lambda segment: segment[0]):
        for file in files:
            if position >= wanted.stop:
                break
            rows = _count(file, source)
            if position + rows > wanted.start:
                part = _letters(file, epoch, source, constants)
                parts.append(part.slice(max(0, wanted.start - position), wanted.stop - max(position, wanted.start)))
            position += rows
    return pa.concat_tables(parts)


def _segments(catalog: Catalog, home: Path, source: str) -> Iterator[tuple[int, list[Path], dict[str, object]]]:
    """(epoch, files, values of columns that the files lack): of the source itself, then of views over it."""
    for known in catalog.sources():
        for epoch in catalog.epochs(known.id) if known.name == source else ():
            if epoch.dead_letter_segment is not None:
                files = sorted((home / epoch.dead_letter_segment).glob("*.parquet"))
                yield epoch.epoch, files, {"replayed_by": epoch.replayed_by}
    for view in catalog.views():
        for advance in catalog.advances(view.id):
            files = [file for segment in advance.refused_files for file in _files(home / segment)]
            if files:
                yield advance.epoch, files, {"view_name": view.name}


def _files(place: Path) -> list[Path]:
    return sorted(place.glob("*.parquet")) if place.is_dir() else [place]


def _count(file: Path, source: str) -> int:
    """The number of dead letters of this source in a file; a view's file may have those of several sources."""
    metadata = pq.read_metadata(file)
    if "relation" not in metadata.schema.names:
        return int(metadata.num_rows)
    relations = pq.ParquetFile(file).read(columns=["relation"])["relation"]
    return int(pa.compute.sum(pa.compute.equal(relations, source)).as_py() or 0)


def _letters(file: Path, epoch: int, source: str, constants: dict[str, object]) -> pa.Table:
    stored = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    if "relation" in stored.column_names:
        stored = stored.filter(pa.compute.equal(stored["relation"], source))
    columns = []
    for field in LETTERS:
        if field.name in stored.column_names:
            columns.append(stored[field.name].cast(field.type))
        else:
            value = epoch if field.name == "epoch" else constants.get(field.name)
            columns.append(pa.repeat(pa.scalar(value, field.type), stored.num_rows))
    return pa.Table.from_arrays(columns, schema=LETTERS)
