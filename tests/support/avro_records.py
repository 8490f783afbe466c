"""Records in Avro behind Confluent's frame, written by fastavro: not by the implementation that reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from laminae.codec.confluent import Framed, join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laminae.registry import RegistryClient


def record_schema(*fields: dict[str, object], name: str = "Order") -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields})


def framed(schema_id: int, text: str, row: dict[str, Any]) -> bytes:
    import fastavro

    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(text)), row)
    return join(Framed(schema_id, body.getvalue()))


@dataclass(frozen=True, slots=True)
class Written:
    """A schema that is registered, for records that are written with it."""

    schema_id: int
    text: str

    def records(self, rows: Iterable[dict[str, Any]]) -> list[bytes]:
        return [framed(self.schema_id, self.text, row) for row in rows]


def register(client: RegistryClient, subject: str, *fields: dict[str, object]) -> Written:
    text = record_schema(*fields)
    return Written(client.register(subject, text), text)
