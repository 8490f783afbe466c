"""The decoder table of an epoch: an immutable value, made afresh from the catalog, swapped by rebinding a name.

A record's version is its stamp, else the version in force at its place in the log (its item number).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from laminae.catalog.model import WriterRecord


@dataclass(frozen=True, slots=True)
class Decoder:
    """One version. `since` is the first log item for which it is in force; None: only stamped records have it yet.

    `aliases`: (former name, live name) of top-level columns in this version, for producers that rename late.
    """

    version: int
    schema: pa.Schema
    since: int | None
    aliases: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """What a message begins with that brings its own schema, and the version of the decoder that it tells.

    Without a version it tells no columns: the message is read as if it had none. A `refusal` is why it has no row.
    """

    text: str
    version: int | None
    refusal: str | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DecoderTable:
    """All versions that records of an epoch can have, oldest first, and the schema they are projected to.

    Without `has_stamps` the log gives no record a version of its own. With `refuses_unknown` a record that has fields
    beyond its schema is refused; the fields are ignored otherwise. `writers` are the schema ids that records in a
    registry's frame may have: what these are read with, instead of versions. None: the records have no frame. `heads`
    are those of messages that bring a schema along. `event_order` is the field that orders events of Debezium's; None:
    the records are rows. With `has_old_rows` both rows of an event are read, that before it and that after it. `gone`
    are names that no field found in the data brings back.
    """

    decoders: tuple[Decoder, ...]
    current: pa.Schema
    version_field: str | None = None
    finds_unknown_fields: bool = False
    has_stamps: bool = True
    refuses_unknown: bool = False
    writers: tuple[WriterRecord, ...] | None = None
    heads: tuple[Head, ...] = ()
    event_order: str | None = None
    has_old_rows: bool = False
    gone: frozenset[str] = frozenset()

    @property
    def newest(self) -> int:
        """The version in force: no head has a version as high."""
        return max(decoder.version for decoder in self.decoders)

    def at(self, item: int) -> Decoder:
        """The decoder of an unstamped record at this place in the log."""
        held = [decoder for decoder in self.decoders if decoder.since is not None and decoder.since <= item]
        return held[-1] if held else self.decoders[0]
