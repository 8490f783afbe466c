"""The format `avro`: records in Confluent framing, decoded with the writer schemas that the catalog has bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.errors import InvalidOption
from laminae.spark.formats.avro.decode import avro_records
from laminae.spark.formats.fast_path import make_ready, quick_rows
from laminae.spark.formats.json.records import as_newest
from laminae.spark.formats.parquet.footers import Refused
from laminae.spark.formats.protocol import Decoded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.formats.protocol import QuickRows, Records


def open_format(source: SourceRecord) -> AvroFormat:
    refuse_without_registry(source)
    return AvroFormat()


def refuse_without_registry(source: SourceRecord) -> None:
    if not spec_of(source).registry.is_given:
        raise InvalidOption(
            option="registry",
            owner=source.name,
            problem="it is missing, and Avro records do not contain their schema",
            advice="Set registry = 'https://host:8081', the address of the schema registry.",
        )


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """`laminae.spark.formats.protocol.RecordFormat` for framed Avro."""

    def decoded(self, records: Records, table: DecoderTable) -> Decoded:
        # The writer schema, not the record, says which columns are new.
        return Decoded(avro_records(records.frame(boundaries=table.boundaries), table), _unchanged)

    def decoded_again(self, letters: DataFrame, table: DecoderTable, reopened: Records | None) -> Decoded:
        return Decoded(avro_records(as_newest(letters, table), table), _unchanged)

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        return True

    def arrow_rows(self, records: Records, table: DecoderTable, are_short: bool) -> QuickRows | None:
        return None

    def fast_rows(self, records: Records, table: DecoderTable, fits: str | None) -> QuickRows | None:
        return quick_rows(records.spark, table, records.frame, fits, records.file_paths, records.planned)

    def make_ready(self, spark: SparkSession, table: DecoderTable, records: Records | None) -> None:
        make_ready(spark, table, None if records is None else records.frame)

    def grown(self, records: Records, decoder: Decoder) -> pa.Schema | Refused:
        return Refused("its schema is in the registry")


def _unchanged(current: pa.Schema) -> pa.Schema:
    return current
