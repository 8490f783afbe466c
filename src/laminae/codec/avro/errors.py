"""Explains why bytes do not match their Avro schema: the field at which fastavro stops reading, and the reason.

Only for the few records that could not be decoded: it reads each of them several times. No Spark here.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING

from laminae.schema.avro import AvroArray, AvroFixed, AvroMap, AvroPrimitive, AvroRecord, parse_avro
from laminae.schema.avro.nodes import AvroKind, AvroUnion

if TYPE_CHECKING:
    from laminae.schema.avro import AvroSchema, AvroType

# The exceptions of fastavro are not a documented contract: the first matching class counts.
PROBLEMS: tuple[tuple[type[Exception], str], ...] = (
    (EOFError, "the bytes end within it"),
    (UnicodeDecodeError, "it holds text that is not UTF-8"),
    (IndexError, "it names a branch or a symbol that its type does not have"),
    (OverflowError, "it holds a number that is out of range"),
)
OTHER = "it holds a value that its type does not allow"


def can_tell() -> bool:
    """Whether fastavro is installed; it is an optional dependency for reading Avro."""
    return find_spec("fastavro") is not None


def why_unreadable(text: str, body: bytes) -> str | None:
    """The reason; None if fastavro reads the record to its end or must not try.

    `text` is a self-contained record schema.
    """
    if _is_endless(parse_avro(text)):
        return None
    schema = json.loads(text)
    names = [field["name"] for field in schema["fields"]]
    # If reading fails with this many fields, it also fails with more of them.
    read = bisect_left(range(1, len(names) + 1), True, key=lambda count: isinstance(_read(schema, count, body), str))
    end = _read(schema, read, body)
    if read < len(names):
        return f"field {names[read]}, from byte {end} of the record on: {_read(schema, read + 1, body)}"
    left = len(body) - int(end)
    return f"{left} bytes follow the record" if left else None


def _read(schema: dict[str, object], count: int, body: bytes) -> int | str:
    """The byte offset at which the first `count` fields end, or why they cannot be read."""
    import fastavro

    fields = schema["fields"]
    assert isinstance(fields, list)  # the schema was parsed before
    stream = BytesIO(body)
    try:
        # A named type is defined before its use: the first fields do not depend on later ones.
        fastavro.schemaless_reader(stream, fastavro.parse_schema({**schema, "fields": fields[:count]}), None)
    except Exception as problem:  # noqa: BLE001  # the bytes are arbitrary, and the exception is the result
        return next((reason for kind, reason in PROBLEMS if isinstance(problem, kind)), OTHER)
    return stream.tell()


def _is_endless(schema: AvroSchema) -> bool:
    """Whether a few bytes can encode any number of array items, because an item takes no bytes."""
    seen: set[str] = set()

    def has_endless(node: AvroType) -> bool:
        resolved = schema.resolve(node)
        if isinstance(resolved, AvroRecord):
            if resolved.name in seen:
                return False
            seen.add(resolved.name)
            return any(has_endless(field.type) for field in resolved.fields)
        if isinstance(resolved, AvroUnion):
            return any(map(has_endless, resolved.branches))
        if isinstance(resolved, AvroArray):
            return _takes_nothing(schema, resolved.items) or has_endless(resolved.items)
        return isinstance(resolved, AvroMap) and has_endless(resolved.values)

    return has_endless(schema.root)


def _takes_nothing(schema: AvroSchema, node: AvroType) -> bool:
    resolved = schema.resolve(node)
    if isinstance(resolved, AvroRecord):
        return all(_takes_nothing(schema, field.type) for field in resolved.fields)
    is_null = isinstance(resolved, AvroPrimitive) and resolved.kind is AvroKind.NULL
    return is_null or (isinstance(resolved, AvroFixed) and not resolved.size)
