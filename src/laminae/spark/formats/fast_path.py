"""The fast path for an epoch in which no record needs the full decoder, the usual case: a cached plan template.

A template is built once for each decoder table, ahead of the first epoch where a change of definition leaves time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.catalyst.column_list import nested
from laminae.spark.catalyst.paths import reading_many
from laminae.spark.catalyst.plans.plan_cache import plan_cache
from laminae.spark.catalyst.plans.plan_template import Template
from laminae.spark.catalyst.plans.prepared_frame import no_rows
from laminae.spark.formats.avro.decode import quick_selects
from laminae.spark.formats.json.decode import decode
from laminae.spark.formats.protocol import ERROR, RAW_SCHEMA, ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.catalyst.plans.plan_template import Grafted

LOG = logging.getLogger(__name__)
READY_SECONDS = 1.0
Read = Callable[[Sequence[str]], "DataFrame"]
"""Returns a frame of the records with these columns."""
Files = Callable[[Sequence[str]], Sequence[str] | None]
Planned = Callable[[Sequence[str]], object | None]


@dataclass(slots=True)
class TemplateRows:
    """`laminae.spark.formats.protocol.QuickRows` that a template produces from records.

    `template` returns the template for these columns of a row, or for all columns if it is given None. `files` returns
    the files that `read` reads, if nothing else differs between epochs, else None. Likewise `planned` returns the RDD
    below the frame that `read` returns.
    """

    spark: SparkSession
    template: Callable[[tuple[str, ...] | None], Template]
    read: Read
    files: Files = lambda columns: None
    planned: Planned = lambda columns: None
    is_bare: bool = True
    are_short: bool = False
    _made: Grafted | None = None

    def frame(self) -> DataFrame:
        return self._upon(None)

    def under(self, template: Template) -> DataFrame:
        return self._upon(template)

    def refused(self) -> bool:
        return self._run().has_dropped()

    def only_long(self) -> bool:
        return False

    def count(self) -> int:
        return self._run().count()

    def _upon(self, above: Template | None) -> DataFrame:
        template = self.template(None if above is None else above.columns)
        files, rows, grafted = self.files(template.columns), self.planned(template.columns), None
        if files is not None:
            with reading_many(self.spark, len(files)):
                grafted = template.again(self.spark, files, above)
        elif rows is not None:
            grafted = template.again_upon(self.spark, rows, above)
        is_alike = not (files is None and rows is None)
        self._made = grafted or template.upon(self.read(template.columns), above, keeps=is_alike)
        return self._made.frame

    def _run(self) -> Grafted:
        assert self._made is not None  # `frame` or `under` was called before
        return self._made


def quick_rows(
    spark: SparkSession,
    table: DecoderTable,
    read: Read,
    fits: str | None,
    files: Files = lambda columns: None,
    planned: Planned = lambda columns: None,
) -> TemplateRows:
    """The rows of JSON or Avro records. Which fields are parsed does not depend on the columns that are requested."""
    return TemplateRows(spark, lambda columns: _template(spark, table, fits), read, files, planned)


def make_ready(spark: SparkSession, table: DecoderTable, read: Read | None) -> None:
    """Do in advance what the first epoch of a table would wait for: build its template and compile the generated code.

    Some of that code is compiled only when it first runs, so one record is passed through, at least up to the filter
    that drops it. `read` returns a frame like those to come, if these will differ only in their files: the plan is kept
    for them. Its records are not read.
    """
    template = _template(spark, table, None)
    fields = no_rows(spark, RAW_SCHEMA).schema
    record = spark.range(1).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in fields))
    empty = record.withColumn("value", F.lit("{}").cast("binary"))
    passing = threading.Thread(target=_pass, args=(template.upon(empty.select(*template.columns)).frame,), daemon=True)
    passing.start()
    if read is not None:
        # A plan is cached from its second use on; the record above was the first.
        template.upon(read(template.columns), keeps=True)
    # If all cores are busy this may take long, and the caller that changed a definition should not wait for it.
    passing.join(READY_SECONDS)


def _pass(rows: DataFrame) -> None:
    try:
        rows.write.format("noop").mode("overwrite").save()
    except Exception as problem:  # noqa: BLE001
        # This is only an optimisation. The session may have been stopped in the meantime.
        LOG.info("the next epoch is not compiled ahead: %s", problem)


def raw_leaf(spark: SparkSession) -> DataFrame:
    """The leaf for raw records, created once and shared by the plans of all sessions of one Spark application."""
    return plan_cache().get(raw_leaf, RAW_SCHEMA, lambda: no_rows(spark, RAW_SCHEMA))


def kept_template(table: DecoderTable, key: Hashable, make: Callable[[], Template]) -> Template:
    """The template cached under this key for the lifetime of the table."""
    return plan_cache().get(table, (Template, key), make)


def _template(spark: SparkSession, table: DecoderTable, fits: str | None) -> Template:
    def make() -> Template:
        if table.writers is not None:
            leaf = raw_leaf(spark)
            return Template(leaf, nested(spark, leaf, quick_selects(table, fits)))
        leaf = no_rows(spark, RAW_SCHEMA)
        rows = decode(leaf, table, exactly=False).where(F.col(ERROR).isNull()).select(f"{ROW}.*")
        return Template(leaf, rows if fits is None else rows.where(fits))

    return kept_template(table, fits, make)
