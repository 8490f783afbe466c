"""The format `json`: one document per record, decoded by `from_json` in the JVM, or by Arrow where it is plain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.spark.formats.fast_path import make_ready, quick_rows
from laminae.spark.formats.inference import infer_schema
from laminae.spark.formats.json.arrow_lines import chunked_rows
from laminae.spark.formats.json.decode import is_decoded_at_once
from laminae.spark.formats.json.records import as_newest, json_records

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.formats.protocol import Decoded, QuickRows, Records


def open_format(source: SourceRecord) -> JsonFormat:
    return JsonFormat()


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """`laminae.spark.formats.protocol.RecordFormat` for records that are JSON documents."""

    def decoded(self, records: Records, table: DecoderTable) -> Decoded:
        return json_records(records.frame(boundaries=table.boundaries), table)

    def decoded_again(self, letters: DataFrame, table: DecoderTable, reopened: Records | None) -> Decoded:
        if reopened is not None:
            letters = letters.unionByName(reopened.frame())
        return json_records(as_newest(letters, table), replace(table, has_stamps=True))

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        return is_decoded_at_once(table)

    def arrow_rows(self, records: Records, table: DecoderTable, are_short: bool) -> QuickRows | None:
        # The length of the lines in a file is not known.
        files = None if are_short else records.files()
        return None if files is None else chunked_rows(records.spark, files, table)

    def fast_rows(self, records: Records, table: DecoderTable, fits: str | None) -> QuickRows | None:
        if not is_decoded_at_once(table):
            return None
        return quick_rows(records.spark, table, records.frame, fits, records.file_paths, records.planned)

    def make_ready(self, spark: SparkSession, table: DecoderTable, records: Records | None) -> None:
        if is_decoded_at_once(table):
            make_ready(spark, table, None if records is None else records.frame)

    def grown(self, records: Records, decoder: Decoder) -> pa.Schema | Refused:
        former = [name for name, _ in decoder.aliases]
        return infer_schema(records.frame(("value",)), decoder.schema, former)
