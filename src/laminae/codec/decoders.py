"""The decoder table of an epoch: an immutable value, rebuilt from the catalog, and swapped by rebinding a name.

A record's version is its stamp, else the version in force at its position in the log (its item number).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from laminae.catalog.model import WriterRecord


@dataclass(frozen=True, slots=True)
class Decoder:
    """One version. `since` is the first log item for which it is in force; None: so far only stamped records use it.

    `aliases`: (former name, live name) of top-level columns in this version, for producers that rename late.
    """

    version: int
    schema: pa.Schema
    since: int | None
    aliases: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """The first bytes of a message with an inline schema, and the decoder version that they select.

    Without a version the schema states no columns: the message is read as if it had none. `refusal`: why it has no row.
    """

    text: str
    version: int | None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The schema version of the epochs that first read the records from item `since` on, and its schema."""

    since: int
    version: int
    schema: pa.Schema


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DecoderTable:
    """All versions that records of an epoch can have, oldest first, and the schema they are projected to.

    - Without `has_stamps`, the log gives no record its own version.
    - With `refuses_unknown`, a record with fields beyond its schema is rejected; otherwise the fields are ignored.
    - `writers` are the schema ids that framed records may have; they are decoded with these instead of versions. None:
      the records have no frame.
    - `heads` are those of messages with inline schemas.
    - `event_order` is the field that orders Debezium events; None: the records are rows.
    - With `has_old_rows`, both images of an event are read, before and after.
    - `gone` are dropped names that fields found in the data must not bring back.
    - `judged` are the versions of the epochs that a re-read joins, oldest first: each checks its own records. Without
      them the current schema checks all.
    - `timestamp_unit` is the unit of JSON numbers in TIMESTAMP columns; None: a number is not a timestamp.
    - Without `exact_times`, dates and times are read by Spark's own casts, as version 0.1 read them.
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
    judged: tuple[Judged, ...] = ()
    timestamp_unit: str | None = None
    exact_times: bool = True

    @property
    def newest(self) -> int:
        """The version in force. Decoders of heads have lower (negative) numbers."""
        return max(decoder.version for decoder in self.decoders)

    @property
    def boundaries(self) -> frozenset[int]:
        """The items at which another version comes into force, for records or for the epochs that a re-read joins."""
        starts = (*(decoder.since for decoder in self.decoders), *(judged.since for judged in self.judged))
        return frozenset(item for item in starts if item is not None)

    def at(self, item: int) -> Decoder:
        """The decoder of an unstamped record at this position in the log."""
        held = [decoder for decoder in self.decoders if decoder.since is not None and decoder.since <= item]
        return held[-1] if held else self.decoders[0]
