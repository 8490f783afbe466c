"""Writes the dead letters of an epoch in a second, small job, which only epochs with refused records run.

Raises `RecordRefused` for a source with `on_error = 'fail'`, and `DeadLetterLimit` beyond the limit of the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine import faults
from laminae.engine.source_spec import OnError, spec_of
from laminae.errors import DeadLetterLimit, RecordRefused
from laminae.spark.formats.avro.errors import with_exact_reasons
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS
from laminae.spark.sources.files.line_numbers import number_lines, position_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from laminae.catalog.port import Catalog
    from laminae.engine.epochs.epoch_plan import EpochPlan
    from laminae.spark.driver.storage import Storage


def write_dead_letters(catalog: Catalog, storage: Storage, plan: EpochPlan, decoded: DataFrame) -> tuple[str, int]:
    """The segment of dead letters and their number."""
    source = plan.source
    refused = decoded.where(F.col(ERROR).isNotNull()).select(*RAW_COLUMNS, F.col(ERROR).alias("reason"))
    refused = with_exact_reasons(refused, plan.table)
    if spec_of(source).on_error is OnError.FAIL:
        first = refused.select("reason", "partition", "offset", "value").first()
        where = position_text(spec_of(source), *first[1:]) if first else "the epoch"
        reason = first["reason"] if first else ""
        raise RecordRefused(source=source.name, place=where, reason=reason)
    segment = storage.new_segment(source.id, "dead_letters")
    refused.write.mode("errorifexists").parquet(storage.path(segment))
    if spec_of(source).numbers_lines:
        number_lines(storage.path(segment))
    faults.reach("dead letters written")
    count = storage.rows(segment)
    limit = spec_of(source).dead_letter_limit
    not_replayed = (epoch for epoch in catalog.dead_letter_epochs(source.id) if epoch.epoch not in plan.replays)
    waiting = sum(epoch.dead_letters for epoch in not_replayed)
    if waiting + count > limit:
        raise DeadLetterLimit(source=source.name, count=waiting + count, limit=limit)
    return segment, count
