"""The Confluent wire format of a message: a zero byte, the schema id as four bytes (big-endian), the body.

The frame does not distinguish Avro from JSON Schema or Protobuf: only the registry's schema type does. No Spark here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from laminae.errors import InvalidFrame

MAGIC = 0
# Newer clients can frame with a sixteen-byte schema id, which the registry calls GUID.
GUID_MAGIC = 1
HEADER = struct.Struct(">Bi")


@dataclass(frozen=True, slots=True)
class Framed:
    schema_id: int
    body: bytes


def split(message: bytes) -> Framed:
    """The id and body of a framed message, or `InvalidFrame`."""
    if len(message) < HEADER.size:
        raise InvalidFrame(problem=f"it has {len(message)} bytes, a frame alone has {HEADER.size}")
    magic, schema_id = HEADER.unpack_from(message)
    if magic == GUID_MAGIC:
        raise InvalidFrame(problem="it begins with 1, a schema GUID, which is not supported")
    if magic != MAGIC:
        raise InvalidFrame(problem=f"it begins with {magic}, not with {MAGIC}")
    if schema_id < 0:
        raise InvalidFrame(problem=f"its schema id is {schema_id}, and ids are not negative")
    return Framed(schema_id, message[HEADER.size :])


def join(framed: Framed) -> bytes:
    return HEADER.pack(MAGIC, framed.schema_id) + framed.body
