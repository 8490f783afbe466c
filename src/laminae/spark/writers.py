"""Schema ids that the records of an epoch have and its plan does not: bound, or held while the registry is away.

Held records are dead letters with a reason of their own; they are put through again as soon as the registry answers.
Where the order of records matters, or too many are held, the source waits instead.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine import faults
from laminae.engine.changelogs import keeps_table
from laminae.engine.epochs import MOST_WRITERS
from laminae.engine.heads import Heads
from laminae.engine.options import is_framed, option
from laminae.engine.subjects import registered
from laminae.engine.writers import Writers, as_of
from laminae.errors import ConcurrentChange, RegistryUnavailable
from laminae.spark.avro import HELD
from laminae.spark.contract import UNKNOWN
from laminae.spark.envelopes import UNTOLD, head_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame

    from laminae.catalog.model import EpochRecord, SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.engine.epochs import EpochPlan, SourceMemory
    from laminae.spark.contract import Decoded
    from laminae.spark.storage import Storage

# A registry that is away is left alone for so long, whatever epochs come meanwhile.
PAUSE_SECONDS = 1.0


@dataclass(slots=True)
class Holding:
    """What a driver remembers of a source whose registry is away: why, and when it is asked again.

    `may_hold`: records may be held, also by an earlier driver.
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
class WriterMeeting:
    """Of every source of a home, under the lease of one driver."""

    catalog: Catalog
    engine: Engine
    storage: Storage
    lease_token: int
    _holdings: dict[int, Holding] = field(default_factory=dict)

    def meet(self, memory: SourceMemory, source: SourceRecord, ids: Iterable[int], count: Callable[[], int]) -> bool:
        """Whether ids were bound that the epoch was not planned with: then it runs again.

        `count` says how many of its records have these ids, for where they must be held.
        """
        writers, learned = Writers(self.catalog, self.engine, self.lease_token), False
        bound = {each.schema_id for each in as_of(self.catalog.writers(source.id)) if each.refusal is None}
        away: RegistryUnavailable | None = None
        for schema_id in sorted(ids):
            faults.reach("schema id met")
            if schema_id in bound:
                # Known, and only not planned with: the registry may be away.
                memory.meet_writer(self.engine.source(source.name), schema_id)
                learned = True
                continue
            try:
                self._bind(writers, source, schema_id)
            except ConcurrentChange:
                # Somebody changed the schema while the epoch ran: look at the records once more with that.
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

    def meet_in(self, memory: SourceMemory, source: SourceRecord, decoded: Decoded) -> bool:
        """The same for the ids that decoded records have and nobody knows."""
        counted = decoded.records.where(F.col(UNKNOWN)).groupBy("version").count().collect()
        strangers = {row["version"]: row["count"] for row in counted}
        return self.meet(memory, source, strangers, lambda: sum(strangers.values()))

    def meet_heads(self, memory: SourceMemory, plan: EpochPlan, decoded: Decoded) -> bool:
        """The same for schemas that messages bring along: they need no registry."""
        texts = decoded.records.where(F.col(UNTOLD)).groupBy(head_text().column.alias("head"))
        first = texts.agg(F.min(F.struct("item", "timestamp", "offset")).alias("first")).orderBy("first")
        heads = Heads(self.catalog, self.engine, self.lease_token)
        try:
            numbers = heads.meet(plan.source.name, [row["head"] for row in first.limit(MOST_WRITERS).collect()])
        except ConcurrentChange:
            # Somebody changed the schema while the epoch ran: look at the records once more with that.
            return True
        for number in numbers:
            memory.meet_writer(self.engine.source(plan.source.name), number)
        return bool(numbers)

    def ask_again(self, source: SourceRecord, letters: DataFrame) -> None:
        """Ask once more about ids of which records were refused or held."""
        if not is_framed(source.options):
            Heads(self.catalog, self.engine, self.lease_token).ask_again(source.name)
            return
        known = {writer.schema_id: writer for writer in as_of(self.catalog.writers(source.id))}
        ids = letters.where(F.col("version").isNotNull()).select("version").distinct().collect()
        for schema_id in sorted(row["version"] for row in ids):
            if schema_id not in known or known[schema_id].refusal is not None:
                Writers(self.catalog, self.engine, self.lease_token).meet(source.name, schema_id)
        self._holding(source).problem = None

    def held(self, source: SourceRecord) -> dict[int, int]:
        """How many records of which schema id wait for the registry."""
        if not is_framed(source.options):
            return {}
        return held_records(self.storage, self.catalog.dead_letter_epochs(source.id))

    def problem(self, source_id: int) -> RegistryUnavailable | None:
        """Why records of a source are held now."""
        holding = self._holdings.get(source_id)
        return None if holding is None else holding.problem

    def can_release(self, source: SourceRecord) -> bool:
        """Whether records are held and the registry answers again. It is asked now and then, not all the time."""
        if not is_framed(source.options):
            return False
        holding = self._holding(source)
        if not holding.may_hold or not holding.is_due:
            return False
        holding.again_at = time.monotonic() + PAUSE_SECONDS
        waiting = self.held(source)
        if not waiting:
            # The epoch that holds some is perhaps not committed yet.
            holding.may_hold = holding.problem is not None
            return False
        try:
            for schema_id in waiting:
                registered(source.options, source.name, schema_id)
        except RegistryUnavailable as problem:
            holding.note(problem)
            return False
        holding.problem, holding.may_hold = None, False
        return True

    def _holding(self, source: SourceRecord) -> Holding:
        return self._holdings.setdefault(source.id, Holding())

    def _bind(self, writers: Writers, source: SourceRecord, schema_id: int) -> None:
        holding = self._holding(source)
        if holding.problem is not None and not holding.is_due:
            raise holding.problem
        writers.meet(source.name, schema_id)

    def _hold(self, source: SourceRecord, count: int, problem: RegistryUnavailable) -> None:
        """Let the epoch set these records aside, or raise: the source waits."""
        limit = int(option(source.options, "hold_max_records") or 0)
        if keeps_table(source) or count + sum(self.held(source).values()) > limit:
            raise problem
        self._holding(source).note(problem)


def held_records(storage: Storage, epochs: Sequence[EpochRecord]) -> dict[int, int]:
    """Of the dead letters of these epochs those that are held, by schema id."""
    found: dict[int, int] = {}
    for epoch in epochs:
        if epoch.dead_letter_segment is None:
            continue
        letters = pq.read_table(
            storage.path(epoch.dead_letter_segment),
            columns=["version", "reason"],
            filters=pc.starts_with(pc.field("reason"), HELD),
        )
        for schema_id in letters["version"].to_pylist():
            found[schema_id] = found.get(schema_id, 0) + 1
    return found
