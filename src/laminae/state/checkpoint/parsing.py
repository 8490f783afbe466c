"""Parse the files of a checkpoint, one function per kind of file. `Damaged` describes what is wrong with a file."""

from __future__ import annotations

import io
import json
import struct as packing
from dataclasses import dataclass
from typing import Any

from laminae.errors import InvalidSchema
from laminae.state.checkpoint.model import Family, Variable
from laminae.state.types import parse_schema

LOG_VERSIONS = ("v1", "v2")
SCHEMA_VERSIONS = ("v2", "v3")
METADATA_VERSIONS = ("v1", "v2")


class Damaged(ValueError):
    """What is wrong with a file; the reader adds which file it is."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """A state store as described by its operator's metadata; `files` are paths of schema files, in v2 only."""

    name: str
    partitions: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    id: int
    name: str
    version: str
    stores: tuple[StoreEntry, ...]
    variables: tuple[Variable, ...]


def log_entry(read: bytes) -> tuple[str, list[str]]:
    """Version and lines of a file in one of Spark's metadata logs."""
    lines = _text(read).splitlines()
    if not lines or not lines[0].startswith("v"):
        raise Damaged("it does not begin with a version")
    if lines[0] not in LOG_VERSIONS:
        raise Damaged(f"version {lines[0]} is not known, {' and '.join(LOG_VERSIONS)} are")
    return lines[0], lines[1:]


def offset_settings(read: bytes) -> dict[str, str]:
    """The settings that Spark stores with the offsets of a batch."""
    _, lines = log_entry(read)
    if len(lines) < 2:
        raise Damaged("it ends before the offsets")
    settings = _json(lines[0]).get("conf", {})
    if not isinstance(settings, dict):
        raise Damaged("its settings are not an object")
    return {name: str(value) for name, value in settings.items()}


def with_setting(read: bytes, name: str, value: str) -> bytes:
    """The same offsets with another value for one setting."""
    version, lines = log_entry(read)
    head = _json(lines[0])
    head["conf"] = {**head["conf"], name: value}
    return "\n".join([version, json.dumps(head, separators=(",", ":")), *lines[1:]]).encode()


def has_store_ids(read: bytes) -> bool:
    """Whether the commit has a state id for each partition: checkpoint format 2."""
    _, lines = log_entry(read)
    if not lines:
        raise Damaged("it ends before the commit")
    return bool(_json(lines[0]).get("stateUniqueIds"))


def with_store_ids(read: bytes, ids: dict[str, list[list[str]]]) -> bytes:
    version, lines = log_entry(read)
    return f"{version}\n{json.dumps({**_json(lines[0]), 'stateUniqueIds': ids})}".encode()


def query_id(read: bytes) -> str:
    value = _json(_text(read)).get("id")
    if not isinstance(value, str):
        raise Damaged("it has no query id")
    return value


def operator_entry(read: bytes) -> OperatorEntry:
    """The metadata of a stateful operator."""
    version, _, body = _text(read).partition("\n")
    if version not in METADATA_VERSIONS:
        raise Damaged(f"version {version!r} of operator metadata is not known")
    metadata = _json(body)
    try:
        info, stores = metadata["operatorInfo"], metadata["stateStoreInfo"]
        entries = tuple(_store(store) for store in stores)
        variables = _variables(metadata.get("operatorPropertiesJson"))
        return OperatorEntry(int(info["operatorId"]), str(info["operatorName"]), version, entries, variables)
    except (KeyError, TypeError, ValueError) as problem:
        raise Damaged(f"operator metadata without {problem}") from None


def _store(found: object) -> StoreEntry:
    assert isinstance(found, dict)
    files = tuple(map(str, found.get("stateSchemaFilePaths", ())))
    return StoreEntry(str(found["storeName"]), int(found["numPartitions"]), files)


def _variables(text: object) -> tuple[Variable, ...]:
    """State variables are stored as JSON texts in a list that is itself inside a JSON text."""
    if not isinstance(text, str) or not text:
        return ()
    listed = _json(text).get("stateVariables", [])
    assert isinstance(listed, list)
    read = [_json(entry) if isinstance(entry, str) else entry for entry in listed]
    return tuple(
        Variable(str(variable["stateName"]), str(variable["stateVariableType"]), bool(variable.get("ttlEnabled")))
        for variable in read
        if isinstance(variable, dict)
    )


def schema_file(read: bytes) -> tuple[str, tuple[Family, ...]]:
    """Version and column families of a state schema file: texts as written by Java's writeUTF, long ones in parts."""
    stream = io.BytesIO(read)
    try:
        version = _utf(stream)
        if version not in SCHEMA_VERSIONS:
            raise Damaged(f"version {version!r} of state schemas is not known")
        if version == "v2":
            return version, (Family("default", parse_schema(_parts(stream)), parse_schema(_parts(stream))),)
        return version, tuple(_family(stream) for _ in range(_number(stream, ">i")))
    except (packing.error, UnicodeDecodeError):
        raise Damaged("it is truncated") from None
    except InvalidSchema as problem:
        raise Damaged(problem.message) from None


def _family(stream: io.BytesIO) -> Family:
    name = _utf(stream)
    _number(stream, ">h")
    key = parse_schema(_parts(stream))
    _number(stream, ">h")
    value = parse_schema(_parts(stream))
    _parts(stream)
    _parts(stream)
    return Family(name, key, value)


def _number(stream: io.BytesIO, form: str) -> int:
    (number,) = packing.unpack(form, stream.read(packing.calcsize(form)))
    return int(number)


def _utf(stream: io.BytesIO) -> str:
    length = _number(stream, ">H")
    read = stream.read(length)
    if len(read) < length:
        raise Damaged("it is truncated")
    return read.decode()


def _parts(stream: io.BytesIO) -> str:
    return "".join(_utf(stream) for _ in range(_number(stream, ">i")))


def _text(read: bytes) -> str:
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise Damaged("it is not text") from None


def _json(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        raise Damaged("it is not JSON") from None
    if not isinstance(parsed, dict):
        raise Damaged("it is not a JSON object")
    return parsed
