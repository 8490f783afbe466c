"""Writer schemas that an epoch's records use and its plan lacks: bind their schema ids, or hold the records.

Records are held while the schema registry is unavailable: they become dead letters with a distinct reason and are
replayed as soon as the registry answers. Where the order of records matters, or too many are held, the source waits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine import faults
from laminae.engine.epochs.epoch_plan import MOST_WRITERS
from laminae.engine.source_spec import spec_of
from laminae.engine.writer_schemas.binding import WriterSchemaBinder, as_of
from laminae.engine.writer_schemas.inline import Heads
from laminae.engine.writer_schemas.registry import registered
from laminae.errors import ConcurrentChange, RegistryUnavailable
from laminae.spark.formats.avro.decode import HELD
from laminae.spark.formats.debezium.json import UNTOLD, head_text
from laminae.spark.formats.protocol import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame

    from laminae.catalog.model import EpochRecord, SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.engine.epochs.epoch_plan import EpochPlan, SourceCache
    from laminae.spark.driver.storage import Storage
    from laminae.spark.formats.protocol import Decoded

# Minimum time between two requests to an unavailable registry, however many epochs run in between.
PAUSE_SECONDS = 1.0


@dataclass(slots=True)
class Holding:
    """What a driver remembers about a source whose registry is unavailable: the error, and the time of the next retry.

    `may_hold`: there may be held records, including those of an earlier driver.
    """

    problem: RegistryUnavailable | None = None
    again_at: float = 0.0
    may_hold: bool = True

    def note(self, problem: RegistryUnavailable) -> None:
        self.problem, self.again_at, self.may_hold = problem, time.monotonic() + PAUSE_SECONDS, True

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.again_at


@dataclass(frozen=True, slots=True)
class WriterSchemaResolver:
    """Binds new writer schemas for all sources of a home, under the lease of one driver."""

    catalog: Catalog
    engine: Engine
    storage: Storage
    lease_token: int
    _holdings: dict[int, Holding] = field(default_factory=dict)

    def meet(self, memory: SourceCache, source: SourceRecord, ids: Iterable[int], count: Callable[[], int]) -> bool:
        """Bind schema ids; whether any of them is bound now that the epoch was not planned with, so that it re-runs.

        `count` returns how many records have these ids. It is called only if they must be held.
        """
        writers, learned = WriterSchemaBinder(self.catalog, self.engine, self.lease_token), False
        bound = {writer.schema_id for writer in as_of(self.catalog.writers(source.id)) if writer.refusal is None}
        away: RegistryUnavailable | None = None
        for schema_id in sorted(ids):
            faults.reach("schema id met")
            if schema_id in bound:
                # Already bound and only missing from the plan, so the registry is not needed.
                memory.meet_writer(self.engine.source(source.name), schema_id)
                learned = True
                continue
            try:
                self._bind(writers, source, schema_id)
            except ConcurrentChange:
                # The schema was changed concurrently while the epoch ran: run again with the new schema.
                learned = True
                continue
            except RegistryUnavailable as problem:
                away = problem
                continue
            self._holding(source).problem = None
            memory.meet_writer(self.engine.source(source.name), schema_id)
            learned = True
        if away is not None and not learned:
            self._hold(source, count(), away)
        return learned

    def meet_in(self, memory: SourceCache, source: SourceRecord, decoded: Decoded) -> bool:
        """`meet` for the unknown schema ids among decoded records."""
        counted = decoded.records.where(F.col(UNKNOWN)).groupBy("version").count().collect()
        strangers = {row["version"]: row["count"] for row in counted}
        return self.meet(memory, source, strangers, lambda: sum(strangers.values()))

    def meet_heads(self, memory: SourceCache, plan: EpochPlan, decoded: Decoded) -> bool:
        """Bind the inline schemas of Debezium messages, which need no registry; whether the epoch runs again."""
        texts = decoded.records.where(F.col(UNTOLD)).groupBy(head_text().column.alias("head"))
        first = texts.agg(F.min(F.struct("item", "timestamp", "offset")).alias("first")).orderBy("first")
        heads = Heads(self.catalog, self.engine, self.lease_token)
        try:
            numbers = heads.meet(plan.source.name, [row["head"] for row in first.limit(MOST_WRITERS).collect()])
        except ConcurrentChange:
            # The schema was changed concurrently while the epoch ran: run again with the new schema.
            return True
        for number in numbers:
            memory.meet_writer(self.engine.source(plan.source.name), number)
        return bool(numbers)

    def ask_again(self, source: SourceRecord, letters: DataFrame) -> None:
        """Try again to bind the writer schemas whose records were refused or held."""
        if not spec_of(source).is_framed:
            Heads(self.catalog, self.engine, self.lease_token).ask_again(source.name)
            return
        known = {writer.schema_id: writer for writer in as_of(self.catalog.writers(source.id))}
        ids = letters.where(F.col("version").isNotNull()).select("version").distinct().collect()
        for schema_id in sorted(row["version"] for row in ids):
            if schema_id not in known or known[schema_id].refusal is not None:
                WriterSchemaBinder(self.catalog, self.engine, self.lease_token).meet(source.name, schema_id)
        self._holding(source).problem = None

    def held(self, source: SourceRecord) -> dict[int, int]:
        """The number of held records by schema id."""
        if not spec_of(source).is_framed:
            return {}
        return held_records(self.storage, self.catalog.dead_letter_epochs(source.id))

    def problem(self, source_id: int) -> RegistryUnavailable | None:
        """The registry error because of which records of a source are currently held."""
        holding = self._holdings.get(source_id)
        return None if holding is None else holding.problem

    def can_release(self, source: SourceRecord) -> bool:
        """Whether records are held and the registry answers again. It is queried at most once in PAUSE_SECONDS."""
        if not spec_of(source).is_framed:
            return False
        holding = self._holding(source)
        if not holding.may_hold or not holding.is_due:
            return False
        holding.again_at = time.monotonic() + PAUSE_SECONDS
        waiting = self.held(source)
        if not waiting:
            # The epoch that holds records may not be committed yet.
            holding.may_hold = holding.problem is not None
            return False
        try:
            for schema_id in waiting:
                registered(spec_of(source), source.name, schema_id)
        except RegistryUnavailable as problem:
            holding.note(problem)
            return False
        holding.problem, holding.may_hold = None, False
        return True

    def _holding(self, source: SourceRecord) -> Holding:
        return self._holdings.setdefault(source.id, Holding())

    def _bind(self, writers: WriterSchemaBinder, source: SourceRecord, schema_id: int) -> None:
        holding = self._holding(source)
        if holding.problem is not None and not holding.is_due:
            raise holding.problem
        writers.meet(source.name, schema_id)

    def _hold(self, source: SourceRecord, count: int, problem: RegistryUnavailable) -> None:
        """Let the epoch hold these records as dead letters, or raise so that the source waits."""
        limit = spec_of(source).hold_max_records
        if spec_of(source).keeps_table or count + sum(self.held(source).values()) > limit:
            raise problem
        self._holding(source).note(problem)


def held_records(storage: Storage, epochs: Sequence[EpochRecord]) -> dict[int, int]:
    """The number of held records among the dead letters of these epochs, by schema id."""
    counts: dict[int, int] = {}
    for epoch in epochs:
        if epoch.dead_letter_segment is None:
            continue
        letters = pq.read_table(
            storage.path(epoch.dead_letter_segment),
            columns=["version", "reason"],
            filters=pc.starts_with(pc.field("reason"), HELD),
        )
        for schema_id in letters["version"].to_pylist():
            counts[schema_id] = counts.get(schema_id, 0) + 1
    return counts
