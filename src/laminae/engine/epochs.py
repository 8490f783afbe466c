"""Plan one epoch of a source: its range, its decoder table, and from where each schema version holds. No Spark here.

Every record is decoded the same way by the first read, by a crash replay and by a later SELECT, because versions are
bound to places in the log, and the place of a version is written with the first epoch that was planned with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.catalog.updates import SetPosition
from laminae.codec.decoders import Decoder, DecoderTable
from laminae.engine.options import option
from laminae.schema.column import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.model import EpochRecord, SinkRecord, SourceRecord, VersionRecord

# Stamped records may be older than the range they stand in; one from_json per version is compiled into the plan.
MOST_STAMPED = 32


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
) -> EpochPlan:
    """The dead letters of these epochs once more, as records of the version in force. It has no place in the log."""
    known = [version for version in versions if version.version <= source.version]
    taken = tuple(epoch.epoch for epoch in dead)
    table = decoder_table(source, known, known[-1:], first_item=0)
    number = -(last_epoch + 1)
    return EpochPlan(source, number, "", "", table, (), _is_read(source, sinks), replays=taken)


def _is_read(source: SourceRecord, sinks: Sequence[SinkRecord]) -> bool:
    return any(sink.relation.casefold() == source.name.casefold() for sink in sinks)


def plan_epoch(
    source: SourceRecord,
    versions: Sequence[VersionRecord],
    sinks: Sequence[SinkRecord],
    batch_id: int,
    span: tuple[str, str],
    first_item: int,
) -> EpochPlan:
    """`first_item` is the log item at which the range begins: versions without a place hold from there."""
    known = [version for version in versions if version.version <= source.version]
    placed = tuple(SetPosition(source.id, v.version, str(first_item)) for v in known if v.position is None)
    recent = known[-MOST_STAMPED:]
    table = decoder_table(source, known, recent, first_item)
    return EpochPlan(source, batch_id, span[0], span[1], table, placed, _is_read(source, sinks))


def decoder_table(
    source: SourceRecord, known: Sequence[VersionRecord], wanted: Sequence[VersionRecord], first_item: int | None
) -> DecoderTable:
    """Decoders of the `wanted` versions among all `known` ones, projecting to the source's current schema.

    Versions without a place hold from `first_item` on. A re-read has None: no record of it stands behind their place.
    """
    accepts = option(source.options, "accept_old_names") != "false"
    decoders = tuple(
        Decoder(
            version=version.version,
            schema=version.schema,
            since=first_item if version.position is None else int(version.position),
            aliases=_aliases(known[: version.version]) if accepts else (),
        )
        for version in wanted
    )
    return DecoderTable(
        decoders=decoders,
        current=source.schema,
        version_field=option(source.options, "version_field"),
        finds_unknown_fields=option(source.options, "evolve") != "off",
    )


def _aliases(versions: Sequence[VersionRecord]) -> tuple[tuple[str, str], ...]:
    """Former names of live columns, as of the last of `versions`. A name that two columns ever had means neither."""
    owners: dict[str, set[int | None]] = {}
    for version in versions:
        for node in columns_of(version.schema):
            owners.setdefault(node.name, set()).add(node.id)
    live = {node.id: node.name for node in columns_of(versions[-1].schema)}
    found: list[tuple[str, str]] = []
    for name, ids in owners.items():
        (owner, *others) = ids
        if not others and owner in live and live[owner] != name and name not in live.values():
            found.append((name, live[owner]))
    return tuple(found)
