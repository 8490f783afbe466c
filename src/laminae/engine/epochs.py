"""Plan one epoch of a source: its range, its decoder table, and from where each schema version holds. No Spark here.

Every record is decoded the same way by the first read, by a crash replay and by a later SELECT, because versions are
bound to places in the log, and the place of a version is written with the first epoch that was planned with it.
"""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from laminae.catalog.updates import SetPosition
from laminae.codec.decoders import Decoder, DecoderTable
from laminae.codec.sent_defaults import without_defaults
from laminae.engine.changelogs import DEBEZIUM, changelog_of, event_order, keeps_bag
from laminae.engine.former_names import accepts_former_names, former_names
from laminae.engine.heads import brings_schemas, has_writers, head_of, sent_columns, tells_columns
from laminae.engine.options import FILE_CONNECTORS, is_framed, option
from laminae.engine.writers import as_of
from laminae.schema.column import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from laminae.catalog.model import EpochRecord, SinkRecord, SourceRecord, VersionRecord, WriterRecord
    from laminae.schema.column import Column, Columns

# So many stamps are remembered from epoch to epoch: each version is a decoder that is compiled into the plan.
MOST_STAMPS = 8
# Of schema ids in a registry's frame: each is a column that is read for its own records alone.
MOST_WRITERS = 32
CLOSER_EPOCHS = 20


class Way(Enum):
    """How the records of an epoch are read, the quickest first. A record that needs a closer look spoils it."""

    SHORT = "lines of plain text, many at once, none of them long"
    CHUNKED = "lines of plain text, many at once"
    QUICK = "record by record, with a test for those that need a closer look"


# These connectors give no record a stamp of its own.
UNSTAMPED = (*FILE_CONNECTORS, "rate", "kafka")
DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """What the epoch does. `positions` are written with its commit; `has_readers` asks for a segment of its rows."""

    source: SourceRecord
    batch_id: int
    start: str
    end: str
    table: DecoderTable
    positions: tuple[SetPosition, ...]
    has_readers: bool
    replays: tuple[int, ...] = ()


def plan_replay(
    source: SourceRecord,
    versions: Sequence[VersionRecord],
    sinks: Sequence[SinkRecord],
    dead: Sequence[EpochRecord],
    last_epoch: int,
    writers: Sequence[WriterRecord] = (),
) -> EpochPlan:
    """The dead letters of these epochs once more, as records of the version in force. It has no place in the log."""
    known = [version for version in versions if version.version <= source.version]
    taken = tuple(epoch.epoch for epoch in dead)
    table = decoder_table(source, known, known[-1:], first_item=0, writers=as_of(writers))
    number = -(last_epoch + 1)
    return EpochPlan(source, number, "", "", table, (), _is_read(source, sinks), replays=taken)


def _is_read(source: SourceRecord, sinks: Sequence[SinkRecord]) -> bool:
    return any(sink.relation.casefold() == source.name.casefold() for sink in sinks)


def plan_epoch(
    source: SourceRecord,
    memory: SourceMemory,
    sinks: Sequence[SinkRecord],
    batch_id: int,
    span: tuple[str, str],
    items: range,
    stamps: Iterable[int] = (),
) -> EpochPlan:
    """`items` are those of the range: versions without a place in the log hold from the first of them.

    `stamps` are versions that its records are known to have.
    """
    placed = tuple(SetPosition(source.id, v.version, str(items.start)) for v in memory.versions if v.position is None)
    table = memory.table(source, items, stamps)
    return EpochPlan(source, batch_id, span[0], span[1], table, placed, _is_read(source, sinks))


@dataclass(slots=True)
class SourceMemory:
    """What the epochs of a source need not ask again: its versions, the stamps that come up, tables made of both.

    All of it can be forgotten: it saves time, and decides nothing. `versions` are all up to the one in force.
    `writers` are what its schema ids stand for, None: to be read again; `recent` are ids as they came up, alone if
    `is_narrow`, and `asked` those that were refused under the definition in force: under another one they are asked
    about again.
    """

    versions: tuple[VersionRecord, ...] = ()
    stamps: tuple[int, ...] = ()
    closer_until: dict[Way, int] = field(default_factory=dict)
    writers: tuple[WriterRecord, ...] | None = None
    recent: tuple[int, ...] = ()
    is_narrow: bool = False
    asked: set[tuple[int, int]] = field(default_factory=set)
    _tables: dict[tuple[object, ...], DecoderTable] = field(default_factory=dict)

    def learn(self, source: SourceRecord, versions: Callable[[int], Sequence[VersionRecord]]) -> None:
        """Read the versions again unless they are those in force and each has its place."""
        if len(self.versions) != source.version or self.versions[-1].position is None:
            self.versions = tuple(versions(source.id))[: source.version]

    def learn_writers(self, source: SourceRecord, writers: Callable[[int], Sequence[WriterRecord]]) -> None:
        if self.writers is None and has_writers(source.options):
            self.writers = tuple(writers(source.id))

    def meet_writer(self, source: SourceRecord, schema_id: int) -> None:
        """An id was bound, or refused: it is known from now on, and epochs with it are as quick as others."""
        self.writers = None
        self.recent = (*(each for each in self.recent if each != schema_id), schema_id)
        self.asked.add((schema_id, source.definition_seq))
        self.closer_until.clear()

    def keep_to(self, ids: Iterable[int]) -> None:
        """A new schema changes the way from every other one: those that its first epoch lacks wait until they are met.

        Each is a part of the plan, which is made while that epoch waits.
        """
        there = set(ids)
        others = there - set(self.recent)
        self.recent = (*sorted(others), *(each for each in self.recent if each in there))
        self.is_narrow = True

    def ways(self, batch_id: int) -> list[Way]:
        """Those that records of epochs not long ago did not spoil."""
        return [way for way in Way if batch_id > self.closer_until.get(way, -1)]

    def look_closer(self, batch_id: int, than: Way, *, only_long: bool = False) -> None:
        """For this epoch and some more: a record that needs it seldom comes alone, and finding one costs a job.

        What is odd among short records is odd among any: only one that is merely long is worth another try.
        """
        spoiled = (Way.SHORT, Way.CHUNKED) if than is Way.SHORT and not only_long else (than,)
        for way in spoiled:
            self.closer_until[way] = batch_id + CLOSER_EPOCHS

    def meet(self, stamps: Iterable[int]) -> bool:
        """Remember stamps that were met; whether there is a version among them that was not remembered."""
        known = {stamp for stamp in stamps if 1 <= stamp <= len(self.versions)} - set(self.stamps)
        self.stamps = (*self.stamps, *sorted(known))
        return bool(known)

    def settle(self) -> None:
        """Before an epoch: all stamps of one are decoded together, but not for ever after."""
        self.stamps = self.stamps[-MOST_STAMPS:]

    def table(self, source: SourceRecord, items: range, stamps: Iterable[int] = ()) -> DecoderTable:
        """Decoders of the versions in force over these items and of the stamps that come up, the same object again."""
        numbers = in_force(self.versions, items)
        if has_stamps(source):
            numbers |= {source.version, *self.stamps, *stamps}
        wanted = [version for version in self.versions if version.version in numbers]
        # A single version holds wherever a record stands.
        placed = wanted if len(wanted) > 1 else ()
        places = tuple(int(items.start if version.position is None else version.position) for version in placed)
        writers = self._writers(source)
        read_with = tuple((writer.schema_id, writer.after_epoch) for writer in writers)
        key = (source.version, source.options, tuple(sorted(numbers)), places, read_with)
        tables = self._tables
        if key not in tables:
            # The last one too: a crash replay or an epoch that runs again asks for it.
            tables = dict([*tables.items()][-1:])
            tables[key] = decoder_table(source, self.versions, wanted, items.start, writers)
            self._tables = tables
        return tables[key]

    def ahead(self, source: SourceRecord, versions: Sequence[VersionRecord], items: range) -> DecoderTable:
        """The table that the next epoch will ask for if it is planned with these; any thread may call it."""
        other = SourceMemory(
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
        """Those that records of the next epoch are likely to have; another id that is bound is met once more."""
        order = {schema_id: place for place, schema_id in enumerate(self.recent)}
        known = [
            writer
            for writer in as_of(self.writers or ())
            if (writer.refusal is None or (writer.schema_id, source.definition_seq) in self.asked)
            and (writer.schema_id in order or not self.is_narrow)
        ]
        return tuple(sorted(known, key=lambda writer: order.get(writer.schema_id, -1))[-MOST_WRITERS:])


def in_force(versions: Sequence[VersionRecord], items: range) -> set[int]:
    """The versions that hold for unstamped records somewhere in these items."""
    places = {v.version: items.start if v.position is None else int(v.position) for v in versions}
    first = max((number for number, place in places.items() if place <= items.start), default=versions[0].version)
    return {first, *(number for number, place in places.items() if items.start < place < items.stop)}


def pieces(versions: Sequence[VersionRecord], items: range) -> list[range]:
    """The items, cut into as few ranges as have at most MOST_STAMPS versions in force."""
    places = sorted({int(v.position) for v in versions if v.position is not None and int(v.position) in items[1:]})
    cuts = [items.start, *places[MOST_STAMPS - 1 :: MOST_STAMPS], items.stop]
    return [range(start, stop) for start, stop in itertools.pairwise(cuts)]


def refuse_alike(one: pa.Schema, other: pa.Schema) -> bool:
    """Whether records are refused under both or under neither: equal types of equal columns, the same NOT NULL."""
    first, second = ({node.id: node for node in _nodes(columns_of(schema))} for schema in (one, other))
    strict = ({number for number, node in found.items() if not node.nullable} for found in (first, second))
    same_types = all(first[number].type == second[number].type for number in first.keys() & second.keys())
    return operator.eq(*strict) and same_types


def _nodes(columns: Columns) -> Iterator[Column]:
    for node in columns:
        yield node
        yield from _nodes(node.children)


def has_stamps(source: SourceRecord) -> bool:
    """Whether a record may say its version itself."""
    return _is_stamped_by_its_log(source) or option(source.options, "version_field") is not None


def _is_stamped_by_its_log(source: SourceRecord) -> bool:
    is_stamped = option(source.options, "connector") not in UNSTAMPED
    return is_stamped or option(source.options, "version_header") is not None


def decoder_table(
    source: SourceRecord,
    known: Sequence[VersionRecord],
    wanted: Sequence[VersionRecord],
    first_item: int | None,
    writers: Sequence[WriterRecord] = (),
) -> DecoderTable:
    """Decoders of the `wanted` versions among all `known` ones, projecting to the source's current schema.

    Versions without a place hold from `first_item` on. A re-read has None: no record of it stands behind their place.
    """
    accepts = accepts_former_names(source)
    refuses = option(source.options, "on_rejected") == DEAD_LETTER
    has_heads = brings_schemas(source.options)
    decoders = tuple(
        Decoder(
            version=version.version,
            schema=sent_columns(version.schema, source.options) if has_heads else version.schema,
            since=first_item if version.position is None else int(version.position),
            aliases=former_names(known[: version.version]) if accepts else (),
        )
        for version in wanted
    )
    told = [writer for writer in writers if has_heads and tells_columns(writer)]
    return DecoderTable(
        decoders=(
            *decoders,
            *(Decoder(-writer.schema_id, without_defaults(writer.columns), since=None) for writer in told),
        ),
        current=source.schema,
        version_field=option(source.options, "version_field"),
        finds_unknown_fields=option(source.options, "evolve") != "off" or refuses,
        has_stamps=_is_stamped_by_its_log(source) or has_heads,
        refuses_unknown=refuses,
        writers=tuple(writers) if is_framed(source.options) else None,
        heads=tuple(map(head_of, writers)) if has_heads else (),
        gone=_gone(known, source.schema) if has_heads else frozenset(),
        event_order=event_order(source.options) if changelog_of(source.options) == DEBEZIUM else None,
        has_old_rows=keeps_bag(source),
    )


def _gone(versions: Sequence[VersionRecord], current: pa.Schema) -> frozenset[str]:
    """Names of columns that were dropped. Events that are late, or come again, have them still."""
    return frozenset(name for version in versions for name in version.schema.names) - set(current.names)
