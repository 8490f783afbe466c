"""The format: each line becomes a JSON document, which the JSON decoder reads. A dead letter keeps the line itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.formats.inference import infer_schema
from laminae.spark.formats.json.decode import is_decoded_at_once
from laminae.spark.formats.json.records import as_newest, json_records
from laminae.spark.formats.protocol import Decoded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.formats.protocol import QuickRows, Records

LINE = "_line"


def open_format(source: SourceRecord) -> LogfmtFormat:
    return LogfmtFormat()


@dataclass(frozen=True, slots=True)
class LogfmtFormat:
    """`laminae.spark.formats.protocol.RecordFormat`, without fast paths: each of them may answer None."""

    def decoded(self, records: Records, table: DecoderTable) -> Decoded:
        return self._decoded(records.frame(), table)

    def decoded_again(self, letters: DataFrame, table: DecoderTable, reopened: Records | None) -> Decoded:
        if reopened is not None:
            letters = letters.unionByName(reopened.frame())
        return self._decoded(as_newest(letters, table), replace(table, has_stamps=True))

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        return is_decoded_at_once(table)

    def arrow_rows(self, records: Records, table: DecoderTable, are_short: bool) -> QuickRows | None:
        return None

    def fast_rows(self, records: Records, table: DecoderTable, fits: str | None) -> QuickRows | None:
        return None

    def make_ready(self, spark: SparkSession, table: DecoderTable, records: Records | None) -> None:
        """Nothing to prepare: there is no fast path."""

    def grown(self, records: Records, decoder: Decoder) -> pa.Schema | Refused:
        frame = records.frame(("value",))
        return infer_schema(frame.select(document(F.col("value")).alias("value")), decoder.schema, ())

    def _decoded(self, raw: DataFrame, table: DecoderTable) -> Decoded:
        opened = raw.withColumn(LINE, F.col("value")).withColumn("value", document(F.col("value")))
        decoded = json_records(opened, table, beside=(LINE,))
        return Decoded(decoded.records.withColumn("value", F.col(LINE)).drop(LINE), decoded.wanted)


def document(line: Column) -> Column:
    """The JSON document of a line; a line that is none stays as it is, and is refused as JSON would be."""

    # Without type hints: Spark would look for Arrow types in them.
    @F.udf(returnType="binary", useArrow=False)
    def opened(line):  # type: ignore[no-untyped-def]  # see above
        import json
        import re
        import shlex

        pairs = [word.partition("=") for word in shlex.split(line.decode())]
        if not pairs or not all(equals for _, equals, _ in pairs):
            return line
        number = re.compile(r"-?\d+(\.\d+)?|true|false|null")
        values = {key: json.loads(text) if number.fullmatch(text) else text for key, _, text in pairs}
        return json.dumps(values).encode()

    return opened(line)
