"""The stages of an epoch, from the plan that runs it. EXPLAIN EPOCH shows them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from laminae.engine.epochs.epoch_plan import SourceCache, plan_epoch
from laminae.engine.plan import PlanLine
from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import live_above

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.model import SinkRecord, SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.catalog.updates import SetPosition
    from laminae.codec.decoders import DecoderTable
    from laminae.engine.epochs.epoch_plan import EpochPlan
    from laminae.engine.epochs.read_strategy import ReadStrategy

FIRST_OFFSET = '{"item": 0}'


@dataclass(frozen=True, slots=True)
class FollowExternalSchema:
    """Takes schema changes of the external table before any record is read."""

    connector: str


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Reads the range by the first strategy that decides every record."""

    start: str
    table: DecoderTable
    strategies: tuple[ReadStrategy, ...]


@dataclass(frozen=True, slots=True)
class WriteSegment:
    """Writes the rows for sinks of the source."""

    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """Merges the records into the table that the source keeps."""

    is_keyed: bool


@dataclass(frozen=True, slots=True)
class UpdateViews:
    """Merges the delta into the views above the source, and emits their changes."""

    views: tuple[str, ...]
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WriteDeadLetters:
    """Writes refused records; a second, small job, in epochs that have some."""

    policy: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Commits offsets, state and changelog in one transaction."""

    version: int
    positions: tuple[SetPosition, ...]


Stage = FollowExternalSchema | ReadRecords | WriteSegment | UpdateTable | UpdateViews | WriteDeadLetters | Commit


def stages_of(plan: EpochPlan, views: Sequence[ViewRecord], sinks: Sequence[SinkRecord]) -> tuple[Stage, ...]:
    """The stages of this plan, in the order in which they run."""
    source, spec = plan.source, spec_of(plan.source)
    above = tuple(view.name for view in live_above(source.name, views))
    stages: list[Stage] = []
    if spec.connector.has_external_schema:
        stages.append(FollowExternalSchema(spec.connector.name))
    stages.append(ReadRecords(plan.start, plan.table, plan.strategies))
    if plan.has_readers:
        stages.append(WriteSegment(_readers((source.name,), sinks)))
    if spec.keeps_table:
        stages.append(UpdateTable(bool(source.primary_key)))
    if above:
        stages.append(UpdateViews(above, _readers(above, sinks)))
    return (*stages, WriteDeadLetters(spec.on_error.value), Commit(source.version, plan.positions))


def _readers(relations: Sequence[str], sinks: Sequence[SinkRecord]) -> tuple[str, ...]:
    names = {relation.casefold() for relation in relations}
    return tuple(sink.name for sink in sinks if sink.relation.casefold() in names)


def explain_epoch(catalog: Catalog, source: SourceRecord, cache: SourceCache) -> tuple[PlanLine, ...]:
    """The next epoch of a source, planned as it will run. Its end is not known before the source is asked for it."""
    last = catalog.last_batch(source.id)
    start = FIRST_OFFSET if last is None else last.end_offsets
    first = int(json.loads(start)["item"])
    cache.learn(source, catalog.versions)
    cache.learn_writers(source, catalog.writers)
    views, sinks = catalog.views(), catalog.sinks()
    batch_id = 0 if last is None else last.batch_id + 1
    plan = plan_epoch(source, cache, sinks, batch_id, (start, ""), range(first, first + 1))
    return tuple(line for stage in stages_of(plan, views, sinks) for line in lines_of(stage, source.name))


def lines_of(stage: Stage, source: str) -> tuple[PlanLine, ...]:
    match stage:
        case FollowExternalSchema(connector):
            return (
                PlanLine("follow external schema", source, f"changes of the {connector} table since the last epoch"),
            )
        case ReadRecords(start, table, strategies):
            versions = ", ".join(str(decoder.version) for decoder in table.decoders if decoder.version > 0)
            writers = ", ".join(str(writer.schema_id) for writer in table.writers or ())
            return (
                PlanLine("read records", source, f"from {start}"),
                PlanLine("decode", source, f"versions {versions}" + (f"; schema ids {writers}" if writers else "")),
                *(PlanLine("strategy", strategy.name, strategy.value) for strategy in strategies),
            )
        case WriteSegment(sinks):
            return (PlanLine("write segment", source, f"for sinks {', '.join(sinks)}"),)
        case UpdateTable(is_keyed):
            return (PlanLine("update table", source, "by its primary key" if is_keyed else "a multiset of its rows"),)
        case UpdateViews(views, sinks):
            fed = f"feeds sinks {', '.join(sinks)}" if sinks else "feeds no sink"
            return (
                *(PlanLine("update view", view, "from the delta of this epoch") for view in views),
                PlanLine("emit", source, fed),
            )
        case WriteDeadLetters(policy):
            return (PlanLine("write dead letters", source, f"on_error = {policy}"),)
        case Commit(version, positions):
            bound = [f"version {position.version} holds from item {position.position}" for position in positions]
            return (PlanLine("commit", source, "; ".join((f"at version {version}", *bound))),)
        case _:
            assert_never(stage)
