"""Debezium's messages as the PostgreSQL connector and Kafka Connect's JSON converter write them, part by part."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any] | None
SOURCE = {
    "version": "3.4.3.Final",
    "connector": "postgresql",
    "name": "shop",
    "ts_ms": 1700000000000,
    "snapshot": "false",
    "db": "shop",
    "sequence": '["23784","23800"]',
    "schema": "public",
    "table": "things",
    "txId": 751,
}


def envelope(op: str, lsn: int | None, after: Row = None, before: Row = None) -> dict[str, Any]:
    """The parts in the order in which they come."""
    source = {**SOURCE, "lsn": lsn, "xmin": None}
    return {
        "before": before,
        "after": after,
        "source": source,
        "transaction": None,
        "op": op,
        "ts_ms": 1700000000123,
        "ts_us": 1700000000123456,
        "ts_ns": 1700000000123456789,
    }


def message(op: str, lsn: int | None, after: Row = None, before: Row = None) -> str:
    """Without a schema: `schemas.enable=false`."""
    return compact(envelope(op, lsn, after, before))


def compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def connect_field(name: str, kind: str, semantic: str | None = None, **more: Any) -> dict[str, Any]:
    """A field of Connect's schema, with the name of its semantic type."""
    named = {} if semantic is None else {"name": semantic, "version": 1}
    return {"type": kind, "optional": True, **named, **more, "field": name}


def told(fields: list[dict[str, Any]], op: str, lsn: int, after: Row = None, before: Row = None) -> str:
    """With a schema: `schemas.enable=true`."""
    row = {"type": "struct", "fields": fields, "optional": True, "name": "shop.public.things.Value"}
    source = [connect_field("version", "string"), connect_field("lsn", "int64")]
    schema = {
        "type": "struct",
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            {"type": "struct", "fields": source, "optional": False, "field": "source"},
            connect_field("op", "string"),
            connect_field("ts_ms", "int64"),
        ],
        "optional": False,
        "name": "shop.public.things.Envelope",
        "version": 2,
    }
    return compact({"schema": schema, "payload": envelope(op, lsn, after, before)})
