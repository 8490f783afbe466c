"""The rows of an epoch none of whose records needs a closer look: the plan of most epochs, kept ready as a template.

A template is made once for each decoder table, ahead of the first epoch where a changed definition gives the time.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from laminae.spark.avro import quick_selects
from laminae.spark.columns import nested
from laminae.spark.contract import ERROR, RAW_SCHEMA, ROW
from laminae.spark.decode import decode
from laminae.spark.java import java_class
from laminae.spark.paths import reading_many
from laminae.spark.planned import no_row_at_all
from laminae.spark.template import Template

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.template import Grafted

LOG = logging.getLogger(__name__)
READY_SECONDS = 1.0
Read = Callable[[Sequence[str]], "DataFrame"]
"""Records with these columns."""
Files = Callable[[Sequence[str]], Sequence[str] | None]
Planned = Callable[[Sequence[str]], object | None]


@dataclass(slots=True)
class TemplateRows:
    """`laminae.spark.contract.QuickRows` that a template makes of records.

    `template` is asked for one that makes these columns of a row, None for all of them. `files` are those that `read`
    reads, where from epoch to epoch nothing else differs; else None. So `planned` is the RDD below what `read` reads.
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
        files, rows, found = self.files(template.columns), self.planned(template.columns), None
        if files is not None:
            with reading_many(self.spark, len(files)):
                found = template.again(self.spark, files, above)
        elif rows is not None:
            found = template.again_upon(self.spark, rows, above)
        is_alike = not (files is None and rows is None)
        self._made = found or template.upon(self.read(template.columns), above, keeps=is_alike)
        return self._made.frame

    def _run(self) -> Grafted:
        assert self._made is not None  # its rows were written
        return self._made


def quick_rows(
    spark: SparkSession,
    table: DecoderTable,
    read: Read,
    fits: str | None,
    files: Files = lambda columns: None,
    planned: Planned = lambda columns: None,
) -> TemplateRows:
    """The rows of records in JSON or Avro. What is parsed of one does not depend on the columns that are asked for."""
    return TemplateRows(spark, lambda columns: _template(spark, table, fits), read, files, planned)


def make_ready(spark: SparkSession, table: DecoderTable, read: Read | None) -> None:
    """Do ahead what the first epoch of a table would wait for: its template, and the code compiled for it.

    Some of that code is compiled where it first runs, so a record goes through, or up to where it is seen to be no row.
    `read` gives records like those to come where only their files will differ: the plan is kept for these. They are not
    read.
    """
    template = _template(spark, table, None)
    fields = no_rows(spark, RAW_SCHEMA).schema
    record = spark.range(1).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in fields))
    empty = record.withColumn("value", F.lit("{}").cast("binary"))
    passing = threading.Thread(target=_pass, args=(template.upon(empty.select(*template.columns)).frame,), daemon=True)
    passing.start()
    if read is not None:
        # The record's plan was a first use.
        template.upon(read(template.columns), keeps=True)
    # With all cores at work it may take its time; whoever has changed a definition need not wait for that.
    passing.join(READY_SECONDS)


def _pass(rows: DataFrame) -> None:
    try:
        rows.write.format("noop").mode("overwrite").save()
    except Exception as problem:  # noqa: BLE001
        # It only saves time. The session may have been stopped meanwhile.
        LOG.info("the next epoch is not compiled ahead: %s", problem)


def no_rows(spark: SparkSession, schema: str | StructType) -> DataFrame:
    """The leaf of a template."""
    # An empty list would be known to be empty, and everything upon it optimised away. An RDD of Python's takes 25 ms.
    jvm: Any = spark.sparkContext._jvm
    types = java_class(jvm, "org.apache.spark.sql.types.StructType")
    session: Any = spark._jsparkSession
    kind = types.fromDDL(schema) if isinstance(schema, str) else session.parseDataType(schema.json())
    return ClassicDataFrame(session.internalCreateDataFrame(no_row_at_all(spark), kind, False), spark)


def raw_leaf(spark: SparkSession) -> DataFrame:
    """That of raw records, for plans that a session of the same application analyses: it is made once."""
    with _lock:
        known = _leaves.get(spark.sparkContext)
        if known is None:
            # A frame holds on to its application, so that of another one goes here.
            _leaves.clear()
            known = _leaves[spark.sparkContext] = no_rows(spark, RAW_SCHEMA)
        return known


def kept_template(table: DecoderTable, key: Hashable, make: Callable[[], Template]) -> Template:
    """The template under this key, which lives as long as the table."""
    return _kept(table).template(key, make)


def _template(spark: SparkSession, table: DecoderTable, fits: str | None) -> Template:
    def make() -> Template:
        if table.writers is not None:
            leaf = raw_leaf(spark)
            return Template(leaf, nested(spark, leaf, quick_selects(table, fits)))
        leaf = no_rows(spark, RAW_SCHEMA)
        rows = decode(leaf, table, exactly=False).where(F.col(ERROR).isNull()).select(f"{ROW}.*")
        return Template(leaf, rows if fits is None else rows.where(fits))

    return kept_template(table, fits, make)


@dataclass(slots=True)
class _Kept:
    """The templates of a table, each made by whoever asks first."""

    table: weakref.ref[DecoderTable]
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: dict[Hashable, Template] = field(default_factory=dict)

    def template(self, key: Hashable, make: Callable[[], Template]) -> Template:
        with self.lock:
            if key not in self.made:
                self.made[key] = make()
            return self.made[key]


_lock = threading.Lock()
_leaves: dict[SparkContext, DataFrame] = {}
# By identity: equal schemas may differ in their metadata, which holds defaults and ids. A template holds on to a
# session of Spark's, so it goes with its table, which goes with the pipeline.
_tables: dict[int, _Kept] = {}


def _kept(table: DecoderTable) -> _Kept:
    key = id(table)
    with _lock:
        kept = _tables.get(key)
        if kept is None or kept.table() is not table:
            kept = _tables[key] = _Kept(weakref.ref(table))
            weakref.finalize(table, _tables.pop, key, None)
        return kept
