"""The Debezium envelope of one change event: written as Debezium does, read in any form that Kafka Connect sends.

`messages.py` writes whole changelogs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, cast

import orjson

from laminae.errors import InvalidChangeEvent
from laminae.zset.debezium.json_text import Json, exact_json, is_plain_row, plain
from laminae.zset.operation import CdcOperation
from laminae.zset.record import ChangelogRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Row = TypeVar("Row")
Nulls = Literal["omit", "explicit"]
"""Whether a missing `before` or `after` is omitted or written as null."""

CREATE, UPDATE, DELETE, READ, TRUNCATE, MESSAGE = "c", "u", "d", "r", "t", "m"
OPERATIONS: dict[str, str] = {
    CREATE: "created",
    UPDATE: "updated",
    DELETE: "deleted",
    READ: "read by a snapshot",
    TRUNCATE: "the table was emptied",
    MESSAGE: "a message in the log, no row",
}
NEEDS_AFTER = frozenset({CREATE, UPDATE, READ})


@dataclass(frozen=True, slots=True)
class CdcSource:
    """The `source` block of an event. `extra` holds the connector's other fields: lsn, snapshot, ts_ms and so on."""

    name: str
    db: str
    table: str
    sequence: int | str | None = 0
    extra: Mapping[str, Json] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Json]:
        return {**self.extra, "name": self.name, "db": self.db, "table": self.table, "sequence": self.sequence}

    def to_json(self) -> str:
        return orjson.dumps(self.to_dict()).decode()

    @classmethod
    def of(cls, given: Mapping[str, Json]) -> CdcSource:
        own = ("name", "db", "table", "sequence")
        name, db, table = (str(given.get(key) or "") for key in own[:3])
        sequence = cast("int | str | None", given.get("sequence"))
        return cls(name, db, table, sequence, {key: value for key, value in given.items() if key not in own})


@dataclass(frozen=True, slots=True)
class CdcEnvelope(Generic[Row]):
    """One change event. `before` and `after` are None if the event does not have them."""

    op: str
    ts_ms: int
    source: CdcSource
    before: Row | None = None
    after: Row | None = None
    ts_us: int | None = None
    ts_ns: int | None = None
    transaction: Mapping[str, Json] | None = None
    message: Mapping[str, Json] | None = None

    def __post_init__(self) -> None:
        if self.op not in OPERATIONS:
            raise _invalid("op", f"{self.op!r} is not an operation")
        if self.op in NEEDS_AFTER and self.after is None:
            raise _invalid("after", f"a row was {OPERATIONS[self.op]} but is missing")

    @classmethod
    def insert(cls, after: Row, source: CdcSource, ts_ms: int) -> CdcEnvelope[Row]:
        return cls(CREATE, ts_ms, source, after=after)

    @classmethod
    def update(cls, before: Row | None, after: Row, source: CdcSource, ts_ms: int) -> CdcEnvelope[Row]:
        return cls(UPDATE, ts_ms, source, before, after)

    @classmethod
    def delete(cls, before: Row | None, source: CdcSource, ts_ms: int) -> CdcEnvelope[Row]:
        return cls(DELETE, ts_ms, source, before)

    @classmethod
    def read(cls, after: Row, source: CdcSource, ts_ms: int) -> CdcEnvelope[Row]:
        """A row read by a snapshot."""
        return cls(READ, ts_ms, source, after=after)

    def to_json(self, nulls: Nulls = "omit") -> str:
        return encode(self, orjson.Fragment(self.source.to_json()), nulls).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> CdcEnvelope[dict[str, Json]]:
        """Parse an event with or without the `schema` and `payload` wrapper; a tombstone is not an event and raises."""
        envelope = read_event(text)
        if envelope is None:
            raise _invalid("the value", "a tombstone, which carries no change")
        return envelope

    def changes(self) -> tuple[ChangelogRecord[Row], ...]:
        """The event as weighted rows at its time.

        A missing image is omitted: then only the consumer that keeps the table knows the old row.
        """
        match self.op, self.before, self.after:
            case "u", before, after:
                old = () if before is None else (ChangelogRecord(before, -1, self.ts_ms, CdcOperation.UPDATE_BEFORE),)
                return (*old, ChangelogRecord(cast(Row, after), 1, self.ts_ms, CdcOperation.UPDATE_AFTER))
            case "d", before, _ if before is not None:
                return (ChangelogRecord.delete(before, self.ts_ms),)
            case (("c" | "r"), _, after):
                return (ChangelogRecord.insert(cast(Row, after), self.ts_ms),)
        return ()


def encode(envelope: CdcEnvelope[Row], source: orjson.Fragment, nulls: Nulls) -> bytes:
    """Encode the event as JSON. NULL columns inside a row are always written."""
    before, after = envelope.before, envelope.after
    event: dict[str, object] = {}
    if before is not None or nulls == "explicit":
        event["before"] = before if is_plain_row(before) else plain(before)
    if after is not None or nulls == "explicit":
        event["after"] = after if is_plain_row(after) else plain(after)
    event["source"], event["op"], event["ts_ms"] = source, envelope.op, envelope.ts_ms
    if envelope.ts_us is not None:
        event["ts_us"] = envelope.ts_us
    if envelope.ts_ns is not None:
        event["ts_ns"] = envelope.ts_ns
    if envelope.transaction is not None:
        event["transaction"] = envelope.transaction
    if envelope.message is not None:
        event["message"] = envelope.message
    return orjson.dumps(event)


def encode_many(envelopes: Iterable[CdcEnvelope[Row]], nulls: Nulls = "omit") -> list[bytes]:
    """Encode many events; the JSON of a source is built once per run of events that share it."""
    messages: list[bytes] = []
    source: CdcSource | None = None
    for envelope in envelopes:
        if envelope.source is not source:
            source, text = envelope.source, orjson.Fragment(envelope.source.to_json())
        messages.append(encode(envelope, text, nulls))
    return messages


def read_event(value: str | bytes | None) -> CdcEnvelope[dict[str, Json]] | None:
    """Parse one message value of a topic; None for a tombstone."""
    if value is None or not value.strip():
        return None
    try:
        event = exact_json(value)
    except ValueError as problem:
        raise _invalid("the value", f"it is not JSON: {problem}") from None
    if isinstance(event, dict) and "payload" in event and "op" not in event:
        event = event["payload"]
    if event is None:
        return None
    if not isinstance(event, dict):
        raise _invalid("the value", f"a {type(event).__name__} where an event was expected")
    op = event.get("op")
    if not isinstance(op, str):
        raise _invalid("op", "it is missing" if op is None else f"{op!r} is not text")
    source = CdcSource.of(_object(event, "source") or {})
    return CdcEnvelope(
        op,
        _integer(event, "ts_ms") or cast(int, _integer(source.extra, "ts_ms")) or 0,
        source,
        _object(event, "before"),
        _object(event, "after"),
        _integer(event, "ts_us"),
        _integer(event, "ts_ns"),
        _object(event, "transaction"),
        _object(event, "message"),
    )


def _object(given: Mapping[str, Json], name: str) -> dict[str, Json] | None:
    value = given.get(name)
    if value is not None and not isinstance(value, dict):
        raise _invalid(name, f"a {type(value).__name__} where an object was expected")
    return value


def _integer(given: Mapping[str, Json], name: str) -> int | None:
    value = given.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise _invalid(name, f"{value!r} is not an integer")
    return value


def _invalid(path: str, problem: str) -> InvalidChangeEvent:
    return InvalidChangeEvent(path=path, problem=problem, operations=", ".join(OPERATIONS))
