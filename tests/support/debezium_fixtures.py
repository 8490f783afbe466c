"""Events of a real connector as they are kept in `tests/fixtures/debezium`: written by a capture, read by tests.

`<form>/<case>.jsonl` begins with a line that has the statements; each other line is a message, in the order of its
partition. Documents of JSON are kept as such where they are what was sent, byte for byte, when written compactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACE = Path(__file__).parents[1] / "fixtures" / "debezium"
SCHEMAS = "schemas.json"
TEXT, HEX = "text", "hex"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a topic, which is named after its table."""

    table: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What was done in the database, and the messages that it came to."""

    statements: tuple[str, ...]
    messages: tuple[Message, ...]


def case(form: str, name: str) -> Case:
    first, *rest = (PLACE / form / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return Case(tuple(json.loads(first)["statements"]), tuple(_read(json.loads(line)) for line in rest))


def cases(form: str) -> list[str]:
    return sorted(path.stem for path in (PLACE / form).glob("*.jsonl"))


def avro_schemas() -> dict[int, Any]:
    """The schemas of the Avro messages by the id that is in their frame."""
    found = json.loads((PLACE / "avro" / SCHEMAS).read_text(encoding="utf-8"))
    return {int(schema_id): schema for schema_id, schema in found.items()}


def keep(form: str, name: str, statements: Sequence[str], messages: Sequence[Message]) -> None:
    place = PLACE / form
    place.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"statements": list(statements)}, ensure_ascii=False), *map(_written, messages)]
    (place / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _written(message: Message) -> str:
    told: dict[str, object] = {"table": message.table, "partition": message.partition}
    told |= {"key": _document(message.key), "value": _document(message.value)}
    if message.headers:
        told["headers"] = {name: None if value is None else value.decode() for name, value in message.headers}
    return json.dumps(told, ensure_ascii=False)


def _read(told: dict[str, Any]) -> Message:
    headers = tuple((name, _bytes_of_text(value)) for name, value in told.get("headers", {}).items())
    return Message(told["table"], told["partition"], _bytes(told["key"]), _bytes(told["value"]), headers)


def _document(data: bytes | None) -> object:
    """A document that gives these bytes again, else the text (Java writes numbers in its own way), else the bytes."""
    if data is None:
        return None
    if data[:1] != b"{":
        return {HEX: data.hex()}
    found = json.loads(data)
    return found if _compact(found) == data else {TEXT: data.decode()}


def _bytes(document: Any) -> bytes | None:
    if document is None:
        return None
    if document.keys() == {HEX}:
        return bytes.fromhex(document[HEX])
    return str(document[TEXT]).encode() if document.keys() == {TEXT} else _compact(document)


def _bytes_of_text(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _compact(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
