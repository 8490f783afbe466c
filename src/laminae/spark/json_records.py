"""Records of JSON bytes as a log hands them out: decoded, with the schema that the suspects among them ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.contract import ERROR, UNKNOWN, Decoded
from laminae.spark.decode import decode
from laminae.spark.infer import infer_schema
from laminae.spark.json_checks import REASONS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable


def json_records(raw: DataFrame, table: DecoderTable, beside: tuple[str, ...] = ()) -> Decoded:
    """The columns named `beside` are kept as they are."""
    records = decode(raw, table, beside=beside)
    if table.writers is not None:
        # What a record asks for beyond the schema, its schema id tells.
        return Decoded(records, lambda current: current)
    if table.refuses_unknown:
        records = records.withColumn(ERROR, F.coalesce(F.col(ERROR), F.when(F.col(UNKNOWN), F.lit(REASONS["unknown"]))))
    return Decoded(records, lambda current: wanted_by(records, table, current))


def wanted_by(records: DataFrame, table: DecoderTable, current: pa.Schema) -> pa.Schema:
    """A schema grown to what the suspects among records ask for."""
    suspects = records.where(F.col(UNKNOWN) | F.col(ERROR).isNotNull()).select("value")
    return infer_schema(suspects, current, _never_columns(table))


def _never_columns(table: DecoderTable) -> set[str]:
    """Former names, which late producers still send, names that are gone, and the field of a record's version."""
    formers = {former for decoder in table.decoders for former, _ in decoder.aliases}
    return {*formers, *table.gone} if table.version_field is None else {*formers, *table.gone, table.version_field}
