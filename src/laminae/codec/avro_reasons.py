"""Why the bytes of a record are no record of its schema: the field at which fastavro stops reading, and what it meets.

Only for the few records that could not be read: it reads each several times. No Spark here.
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

# What fastavro raises is part of no contract of its: the first class that fits counts.
PROBLEMS: tuple[tuple[type[Exception], str], ...] = (
    (EOFError, "the bytes end within it"),
    (UnicodeDecodeError, "it holds text that is not UTF-8"),
    (IndexError, "it names a branch or a symbol that its type does not have"),
    (OverflowError, "it holds a number that is out of range"),
)
OTHER = "it holds what its type cannot be"


def can_tell() -> bool:
    """Whether fastavro is installed, which not every reader of Avro needs."""
    return find_spec("fastavro") is not None


def why_unreadable(text: str, body: bytes) -> str | None:
    """The reason, None where fastavro reads the record to its end or must not try.

    `text` is the schema of a record that needs no other schema.
    """
    if _is_endless(parse_avro(text)):
        return None
    schema = json.loads(text)
    names = [field["name"] for field in schema["fields"]]
    # What cannot be read with so many fields cannot be read with more of them.
    read = bisect_left(range(1, len(names) + 1), True, key=lambda count: isinstance(_read(schema, count, body), str))
    end = _read(schema, read, body)
    if read < len(names):
        return f"field {names[read]}, from byte {end} of the record on: {_read(schema, read + 1, body)}"
    left = len(body) - int(end)
    return f"{left} bytes follow the record" if left else None


def _read(schema: dict[str, object], count: int, body: bytes) -> int | str:
    """Where the first fields of a record end, or why they cannot be read."""
    import fastavro

    fields = schema["fields"]
    assert isinstance(fields, list)  # a schema that was parsed before
    stream = BytesIO(body)
    try:
        # A name stands for a type that is defined before its use: the first fields need none of the others.
        fastavro.schemaless_reader(stream, fastavro.parse_schema({**schema, "fields": fields[:count]}), None)
    except Exception as problem:  # noqa: BLE001  # any bytes may come here, and it is the reason that is asked for
        return next((told for kind, told in PROBLEMS if isinstance(problem, kind)), OTHER)
    return stream.tell()


def _is_endless(schema: AvroSchema) -> bool:
    """Whether a few bytes can stand for any number of items, because an item takes none."""
    seen: set[str] = set()

    def has_endless(node: AvroType) -> bool:
        found = schema.resolve(node)
        if isinstance(found, AvroRecord):
            if found.name in seen:
                return False
            seen.add(found.name)
            return any(has_endless(field.type) for field in found.fields)
        if isinstance(found, AvroUnion):
            return any(map(has_endless, found.branches))
        if isinstance(found, AvroArray):
            return _takes_nothing(schema, found.items) or has_endless(found.items)
        return isinstance(found, AvroMap) and has_endless(found.values)

    return has_endless(schema.root)


def _takes_nothing(schema: AvroSchema, node: AvroType) -> bool:
    found = schema.resolve(node)
    if isinstance(found, AvroRecord):
        return all(_takes_nothing(schema, field.type) for field in found.fields)
    is_null = isinstance(found, AvroPrimitive) and found.kind is AvroKind.NULL
    return is_null or (isinstance(found, AvroFixed) and not found.size)
