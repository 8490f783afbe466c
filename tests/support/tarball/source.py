"""The source: one tar file is one item, and a line of a gzip file in it is a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.spark.catalyst.paths import local_path
from laminae.spark.formats.protocol import RAW_COLUMNS, RAW_SCHEMA
from laminae.spark.sources.base import NumberedSource, no_records, settings_of
from laminae.spark.sources.files.listing import FileList
from laminae.spark.sources.latest_offset import log_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.spark.sources.latest_offset import Settings
    from laminae.spark.sources.protocol import LogRange


def open_source(source: SourceRecord, home: str) -> TarSource:
    path = local_path(spec_of(source).setting("path") or "", f"source {source.name}")
    return TarSource(settings_of(source, home, path=f"{path}/*.tar"))


class TarSource(NumberedSource):
    """The files are numbered as those of a `files` source, in a durable list of their own."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, FileList(log_at(settings), settings["path"]))
        self._list = FileList(self._directory, settings["path"])

    def read(
        self,
        spark: SparkSession,
        span: LogRange,
        columns: Sequence[str] = RAW_COLUMNS,
        boundaries: Collection[int] | None = None,
    ) -> DataFrame:
        entries = [(entry.path, entry.item) for entry in self._list.entries(self._items(span))]
        if not entries:
            return no_records(spark)

        def untarred(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import gzip
            import tarfile

            import pyarrow as pa

            kinds = [
                pa.field("key", pa.binary()), pa.field("value", pa.binary()), pa.field("partition", pa.string()),
                pa.field("offset", pa.int64()), pa.field("item", pa.int64()),
                pa.field("timestamp", pa.timestamp("us", "UTC")), pa.field("version", pa.int32()),
            ]  # fmt: skip
            for batch in batches:
                for path, item in zip(batch["path"].to_pylist(), batch["item"].to_pylist(), strict=True):
                    with tarfile.open(path) as tar:
                        members = sorted(tar.getmembers(), key=lambda member: member.name)
                        texts = [gzip.decompress(tar.extractfile(member).read()) for member in members]  # type: ignore[union-attr]  # a member that is a file has one
                    lines = [line for text in texts for line in text.splitlines()]
                    records = [(None, line, path, at, item, None, None) for at, line in enumerate(lines)]
                    yield from pa.Table.from_pylist(
                        [dict(zip((kind.name for kind in kinds), record, strict=True)) for record in records],
                        pa.schema(kinds),
                    ).to_batches()

        return spark.createDataFrame(entries, "path STRING, item BIGINT").mapInArrow(untarred, RAW_SCHEMA)
