"""Decodes raw records in JSON, and infers the schema that suspect records require."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.formats.inference import infer_schema
from laminae.spark.formats.json.decode import decode
from laminae.spark.formats.json.exact_check import REASONS
from laminae.spark.formats.protocol import ERROR, UNKNOWN, Decoded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable


def json_records(raw: DataFrame, table: DecoderTable, beside: tuple[str, ...] = ()) -> Decoded:
    """Decode raw records. The columns named in `beside` are passed through unchanged."""
    records = decode(raw, table, beside=beside)
    if table.refuses_unknown:
        records = records.withColumn(ERROR, F.coalesce(F.col(ERROR), F.when(F.col(UNKNOWN), F.lit(REASONS["unknown"]))))
    return Decoded(records, lambda current: wanted_by(records, table, current))


def as_newest(letters: DataFrame, table: DecoderTable) -> DataFrame:
    """Dead letters stamped with the version in force: a replay decodes them with it, not with the one that failed."""
    return letters.withColumn("version", F.lit(table.newest))


def wanted_by(records: DataFrame, table: DecoderTable, current: pa.Schema) -> pa.Schema:
    """`current`, extended by the fields and types that the suspect records require."""
    suspects = records.where(F.col(UNKNOWN) | F.col(ERROR).isNotNull()).select("value")
    return infer_schema(suspects, current, _never_columns(table))


def _never_columns(table: DecoderTable) -> set[str]:
    """Names that never become columns: former names (late producers still send them), dropped names, version field."""
    formers = {former for decoder in table.decoders for former, _ in decoder.aliases}
    return {*formers, *table.gone} if table.version_field is None else {*formers, *table.gone, table.version_field}
