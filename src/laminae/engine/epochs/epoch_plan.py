"""Plans one epoch of a source: its offset range, its decoder table, and the position of each schema version.

The first read, a crash replay and a later SELECT decode every record in the same way, because versions are bound to
positions in the log, and the position of a version is committed with the first epoch that was planned with it. No Spark
here.
"""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from laminae.catalog.updates import SetPosition
from laminae.codec.debezium.defaults import without_defaults
from laminae.codec.decoders import Decoder, DecoderTable
from laminae.engine.changelogs import keeps_bag
from laminae.engine.epochs.read_strategy import ARROW, NO_FACTS, RangeFacts, ReadStrategy, read_strategies
from laminae.engine.evolution.aliases import former_names_by_version
from laminae.engine.source_spec import spec_of
from laminae.engine.writer_schemas.binding import as_of
from laminae.engine.writer_schemas.inline import head_of, sent_columns, tells_columns
from laminae.schema.column import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from laminae.catalog.model import EpochRecord, SinkRecord, SourceRecord, VersionRecord, WriterRecord
    from laminae.schema.column import Column, Columns

# Version stamps remembered from epoch to epoch: each version is a decoder that is compiled into the Spark plan.
MOST_STAMPS = 8
# Schema ids (Confluent framing) remembered in the same way: each is a column that is decoded for its own records only.
MOST_WRITERS = 32
# Epochs for which a strategy stays disabled: records that rule it out seldom occur alone.
DISABLED_EPOCHS = 20


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """What the epoch does. `positions` are committed with it; `has_readers`: sinks need its rows as a segment.

    `strategies` are tried in this order until one decides every record. The runner executes this value, and EXPLAIN
    EPOCH shows it.
    """

    source: SourceRecord
    batch_id: int
    start: str
    end: str
    table: DecoderTable
    positions: tuple[SetPosition, ...]
    has_readers: bool
    strategies: tuple[ReadStrategy, ...]
    replays: tuple[int, ...] = ()


def plan_replay(
    source: SourceRecord,
    versions: Sequence[VersionRecord],
    sinks: Sequence[SinkRecord],
    dead: Sequence[EpochRecord],
    last_epoch: int,
    writers: Sequence[WriterRecord] = (),
) -> EpochPlan:
    """Replays the dead letters of these epochs as records of the current version. The replay covers no offset range."""
    known = [version for version in versions if version.version <= source.version]
    taken = tuple(epoch.epoch for epoch in dead)
    table = decoder_table(source, known, known[-1:], first_item=0, writers=as_of(writers))
    number = -(last_epoch + 1)
    return EpochPlan(source, number, "", "", table, (), _is_read(source, sinks), (ReadStrategy.EXACT,), replays=taken)


def _is_read(source: SourceRecord, sinks: Sequence[SinkRecord]) -> bool:
    return any(sink.relation.casefold() == source.name.casefold() for sink in sinks)


def plan_epoch(
    source: SourceRecord,
    memory: SourceCache,
    sinks: Sequence[SinkRecord],
    batch_id: int,
    span: tuple[str, str],
    items: range,
    stamps: Iterable[int] = (),
    facts: RangeFacts = NO_FACTS,
) -> EpochPlan:
    """`items` is the range of log items; versions without a position hold from its first item on.

    `stamps` are versions that its records are known to carry.
    """
    placed = tuple(SetPosition(source.id, v.version, str(items.start)) for v in memory.versions if v.position is None)
    table = memory.table(source, items, stamps)
    strategies = read_strategies(source, table, memory.disabled(batch_id), facts)
    return EpochPlan(source, batch_id, span[0], span[1], table, placed, _is_read(source, sinks), strategies)


@dataclass(slots=True)
class SourceCache:
    """Cached state of a source between epochs: its versions, the stamps seen, and decoder tables built from both.

    A cache only: dropping it costs time and never changes a result. `versions` are all versions up to the current one.
    `writers` are the bound schema ids, None if they must be read again. `recent` are schema ids in the order they were
    last seen; with `is_narrow` only these get decoders. `asked` are ids that were refused under the current definition:
    under another definition they are looked up again. `released_at` is the version at which waiting dead letters were
    last searched.
    """

    versions: tuple[VersionRecord, ...] = ()
    stamps: tuple[int, ...] = ()
    met: tuple[int, ...] = ()
    """Version stamps seen in the current epoch."""
    disabled_until: dict[ReadStrategy, int] = field(default_factory=dict)
    writers: tuple[WriterRecord, ...] | None = None
    recent: tuple[int, ...] = ()
    is_narrow: bool = False
    asked: set[tuple[int, int]] = field(default_factory=set)
    released_at: int | None = None
    _tables: dict[tuple[object, ...], DecoderTable] = field(default_factory=dict)

    def copy(self) -> SourceCache:
        """A copy that can be read and filled while an epoch uses this one."""
        return replace(
            self, disabled_until=dict(self.disabled_until), asked=set(self.asked), _tables=dict(self._tables)
        )

    def learn(self, source: SourceRecord, versions: Callable[[int], Sequence[VersionRecord]]) -> None:
        """Read the versions again unless the cached ones are current and each has its position."""
        if len(self.versions) != source.version or self.versions[-1].position is None:
            self.versions = tuple(versions(source.id))[: source.version]

    def learn_writers(self, source: SourceRecord, writers: Callable[[int], Sequence[WriterRecord]]) -> None:
        if self.writers is None and spec_of(source).has_writers:
            self.writers = tuple(writers(source.id))

    def meet_writer(self, source: SourceRecord, schema_id: int) -> None:
        """Record that a schema id was bound or refused: it has a decoder now, so fast strategies apply again."""
        self.writers = None
        self.recent = (*(recent_id for recent_id in self.recent if recent_id != schema_id), schema_id)
        self.asked.add((schema_id, source.definition_seq))
        self.disabled_until.clear()

    def keep_to(self, ids: Iterable[int]) -> None:
        """Restrict the decoders to the schema ids in the first epoch of a new schema; others are added when seen.

        A new schema changes the projection from every writer schema. Each is a part of the Spark plan, and the epoch
        waits for the plan.
        """
        epoch_ids = set(ids)
        new_ids = epoch_ids - set(self.recent)
        self.recent = (*sorted(new_ids), *(recent_id for recent_id in self.recent if recent_id in epoch_ids))
        self.is_narrow = True

    def disabled(self, batch_id: int) -> frozenset[ReadStrategy]:
        """The read strategies that records of recent epochs have ruled out."""
        return frozenset(strategy for strategy, until in self.disabled_until.items() if batch_id <= until)

    def disable(self, batch_id: int, strategy: ReadStrategy, *, only_long: bool = False) -> None:
        """Disable a strategy for this epoch and the next ones: records that rule it out seldom occur alone, and
        detecting one costs a Spark job.

        A record that rules out ARROW_SHORT_LINES rules out ARROW_LINES too, unless it is merely long.
        """
        ruled_out = ARROW if strategy is ReadStrategy.ARROW_SHORT_LINES and not only_long else (strategy,)
        for disabled in ruled_out:
            self.disabled_until[disabled] = batch_id + DISABLED_EPOCHS

    def meet(self, stamps: Iterable[int]) -> bool:
        """Record the stamps seen; return whether they include a version that this epoch had not seen yet."""
        known = {stamp for stamp in stamps if 1 <= stamp <= len(self.versions)}
        is_new = not known.issubset(self.met)
        self.met = tuple(sorted({*self.met, *known}))
        self.stamps = (*self.stamps, *sorted(known - set(self.stamps)))
        return is_new

    def settle(self) -> None:
        """Trim the stamps before an epoch: all stamps of one epoch are decoded together, but not kept forever."""
        self.stamps, self.met = self.stamps[-MOST_STAMPS:], ()

    def table(self, source: SourceRecord, items: range, stamps: Iterable[int] = ()) -> DecoderTable:
        """Decoders of the versions in force over these items and of the stamps seen.

        Cached: equal arguments give the same object.
        """
        numbers = in_force(self.versions, items)
        at_hand = set(stamps)
        if at_hand and spec_of(source).version_field is None:
            # The log reports the stamps of its records; adding stamps seen earlier would only add decoders to the plan.
            numbers |= {*at_hand, *self.met}
        elif spec_of(source).has_stamps:
            numbers |= {source.version, *self.stamps, *at_hand}
        wanted = [version for version in self.versions if version.version in numbers]
        # A single version holds at every position.
        placed = wanted if len(wanted) > 1 else ()
        places = tuple(int(items.start if version.position is None else version.position) for version in placed)
        writers = self._writers(source)
        read_with = tuple((writer.schema_id, writer.after_epoch) for writer in writers)
        key = (source.version, source.options, tuple(sorted(numbers)), places, read_with)
        tables = self._tables
        if key not in tables:
            # The previous table is kept too: a crash replay or a repeated epoch needs it.
            tables = dict([*tables.items()][-1:])
            tables[key] = decoder_table(source, self.versions, wanted, items.start, writers)
            self._tables = tables
        return tables[key]

    def ahead(self, source: SourceRecord, versions: Sequence[VersionRecord], items: range) -> DecoderTable:
        """The table that the next epoch will need if it is planned with these versions. Thread-safe."""
        other = SourceCache(
            tuple(versions)[: source.version],
            self.stamps[-MOST_STAMPS:],
            writers=self.writers,
            recent=self.recent,
            is_narrow=self.is_narrow,
            asked=self.asked,
            _tables=dict(self._tables),
        )
        table = other.table(source, items)
        self._tables = other._tables
        return table

    def _writers(self, source: SourceRecord) -> tuple[WriterRecord, ...]:
        """The writer schemas that records of the next epoch probably use. Other bound ids are added when seen."""
        order = {schema_id: place for place, schema_id in enumerate(self.recent)}
        known = [
            writer
            for writer in as_of(self.writers or ())
            if (writer.refusal is None or (writer.schema_id, source.definition_seq) in self.asked)
            and (writer.schema_id in order or not self.is_narrow)
        ]
        return tuple(sorted(known, key=lambda writer: order.get(writer.schema_id, -1))[-MOST_WRITERS:])


def in_force(versions: Sequence[VersionRecord], items: range) -> set[int]:
    """The versions that apply to unstamped records somewhere in these items."""
    places = {v.version: items.start if v.position is None else int(v.position) for v in versions}
    first = max((number for number, place in places.items() if place <= items.start), default=versions[0].version)
    return {first, *(number for number, place in places.items() if items.start < place < items.stop)}


def pieces(versions: Sequence[VersionRecord], items: range) -> list[range]:
    """The items, split into as few ranges as possible with at most MOST_STAMPS versions in force in each."""
    places = sorted({int(v.position) for v in versions if v.position is not None and int(v.position) in items[1:]})
    cuts = [items.start, *places[MOST_STAMPS - 1 :: MOST_STAMPS], items.stop]
    return [range(start, stop) for start, stop in itertools.pairwise(cuts)]


def refuse_alike(one: pa.Schema, other: pa.Schema) -> bool:
    """Whether both schemas reject the same records: equal types for the same columns, and the same NOT NULL columns."""
    first, second = ({node.id: node for node in _nodes(columns_of(schema))} for schema in (one, other))
    strict = ({number for number, node in columns.items() if not node.nullable} for columns in (first, second))
    same_types = all(first[number].type == second[number].type for number in first.keys() & second.keys())
    return operator.eq(*strict) and same_types


def _nodes(columns: Columns) -> Iterator[Column]:
    for node in columns:
        yield node
        yield from _nodes(node.children)


def decoder_table(
    source: SourceRecord,
    known: Sequence[VersionRecord],
    wanted: Sequence[VersionRecord],
    first_item: int | None,
    writers: Sequence[WriterRecord] = (),
) -> DecoderTable:
    """Decoders of the `wanted` versions among all `known` ones, projecting to the source's current schema.

    Versions without a position hold from `first_item` on. A re-read passes None: it has no records of such versions.
    """
    spec = spec_of(source)
    has_heads = spec.brings_schemas
    numbers = {version.version for version in wanted}
    aliases = former_names_by_version(known, numbers) if spec.accepts_old_names else {}
    decoders = tuple(
        Decoder(
            version=version.version,
            schema=sent_columns(version.schema, spec.events) if has_heads else version.schema,
            since=first_item if version.position is None else int(version.position),
            aliases=aliases.get(version.version, ()),
        )
        for version in wanted
    )
    inline_writers = [writer for writer in writers if has_heads and tells_columns(writer)]
    return DecoderTable(
        decoders=(
            *decoders,
            *(Decoder(-writer.schema_id, without_defaults(writer.columns), since=None) for writer in inline_writers),
        ),
        current=source.schema,
        version_field=spec.version_field,
        finds_unknown_fields=spec.evolves or spec.refuses_unknown,
        has_stamps=spec.is_stamped_by_log or has_heads,
        refuses_unknown=spec.refuses_unknown,
        writers=tuple(writers) if spec.is_framed else None,
        heads=tuple(map(head_of, writers)) if has_heads else (),
        gone=_gone(known, source.schema) if has_heads else frozenset(),
        event_order=spec.events.order if spec.is_debezium else None,
        has_old_rows=keeps_bag(source),
        timestamp_unit=spec.timestamp_unit,
    )


def _gone(versions: Sequence[VersionRecord], current: pa.Schema) -> frozenset[str]:
    """Names of dropped columns. Late or redelivered events still carry them."""
    return frozenset(name for version in versions for name in version.schema.names) - set(current.names)
