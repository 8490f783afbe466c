"""What the files of a checkpoint say, read through a port: formats, and what is missing, damaged or not known."""

from __future__ import annotations

import json
import struct as packing

import pytest

from laminae.errors import CheckpointInvalid
from laminae.state.checkpoint.model import HDFS, ROCKSDB
from laminae.state.checkpoint.parsing import Damaged, has_store_ids, offset_settings, with_setting, with_store_ids
from laminae.state.checkpoint.reading import read_checkpoint
from laminae.state.types import Leaf, Struct, struct, to_json

KEY, VALUE = struct(("id", Leaf("long"))), struct(("sum", Leaf("long")))


class Memory:
    """Files in a dict by path."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def names(self, directory: str) -> tuple[str, ...]:
        inside = (path.removeprefix(f"{directory}/") for path in self.files if path.startswith(f"{directory}/"))
        return tuple(sorted({path.split("/")[0] for path in inside}))

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)


def text(content: str) -> bytes:
    return packing.pack(">H", len(content)) + content.encode()


def parts(schema: Struct) -> bytes:
    return packing.pack(">i", 1) + text(json.dumps(to_json(schema)))


def schema_v2() -> bytes:
    return text("v2") + parts(KEY) + parts(VALUE)


def schema_v3(*families: str) -> bytes:
    none = packing.pack(">i", 0)
    each = (
        text(name) + packing.pack(">h", 0) + parts(KEY) + packing.pack(">h", 0) + parts(VALUE) + none + none
        for name in families
    )
    return text("v3") + packing.pack(">i", len(families)) + b"".join(each)


OFFSETS = b'v1\n{"batchWatermarkMs":0,"conf":{"spark.sql.shuffle.partitions":"2"}}\n{"logOffset":0}'
METADATA = {
    "operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"},
    "stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 2}],
}


def files(**changed: bytes | None) -> Memory:
    """A checkpoint with two committed batches and a planned one; a change is named by the end of its path."""
    every: dict[str, bytes] = {
        "c/metadata": b'{"id":"q"}',
        "c/offsets/0": OFFSETS,
        "c/offsets/1": OFFSETS,
        "c/offsets/2": OFFSETS,
        "c/commits/0": b'v1\n{"nextBatchWatermarkMs":0}',
        "c/commits/1": b'v1\n{"nextBatchWatermarkMs":0}',
        "c/state/0/_metadata/metadata": b"v1\n" + json.dumps(METADATA).encode(),
        "c/state/0/0/_metadata/schema": schema_v2(),
    }
    for end, content in changed.items():
        (path,) = [path for path in every if path.endswith(end.replace("__", "/"))]
        if content is None:
            del every[path]
        else:
            every[path] = content
    return Memory(every)


def test_a_checkpoint_is_read_at_its_last_committed_batch() -> None:
    found = read_checkpoint(files(), "c")
    assert (found.query_id, found.batch, found.planned, found.provider) == ("q", 1, (2,), HDFS)
    (operator,) = found.operators
    assert operator.signature == (0, "stateStoreSave", ("default",))
    assert [(one.name, one.key, one.value) for one in operator.stores[0].families] == [("default", KEY, VALUE)]


def test_format_2_finds_its_schema_files_beside_it_wherever_they_are_said_to_be() -> None:
    store = {
        "storeName": "default",
        "numPartitions": 2,
        "stateSchemaFilePaths": ["file:/gone/_stateSchema/default/0_x"],
    }
    variable = json.dumps({"stateName": "v", "stateVariableType": "ValueState", "ttlEnabled": True})
    metadata = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateExec"},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": json.dumps({"stateVariables": [variable]}),
    }
    memory = files()
    memory.files["c/state/0/_metadata/v2/0"] = b"v2\n" + json.dumps(metadata).encode()
    memory.files["c/state/0/_stateSchema/default/0_x"] = schema_v3("v", "$ttl_v")
    (operator,) = read_checkpoint(memory, "c").operators
    assert [one.name for one in operator.stores[0].families] == ["$ttl_v", "v"]
    assert [(one.name, one.kind, one.has_ttl) for one in operator.variables] == [("v", "ValueState", True)]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"0___metadata__schema": None}, "schema is missing"),
        ({"0___metadata__schema": schema_v2()[:-5]}, "truncated"),
        ({"0___metadata__schema": text("v9")}, "'v9' of state schemas is not known"),
        ({"state__0___metadata__metadata": b"v7\n{}"}, "'v7' of operator metadata is not known"),
        ({"state__0___metadata__metadata": b"v1\n{}"}, "operator metadata without"),
        ({"offsets__1": b"v5\n{}\n{}"}, "version v5 is not known"),
        ({"offsets__1": b"v1\n{}"}, "ends before the offsets"),
        ({"commits__1": b"nothing"}, "does not begin with a version"),
        ({"c__metadata": b"{}"}, "no query id"),
        ({"c__metadata": b"\xff\xfe"}, "not text"),
    ],
)
def test_what_is_missing_or_damaged_is_named(changed: dict[str, bytes | None], told: str) -> None:
    with pytest.raises(CheckpointInvalid, match=told):
        read_checkpoint(files(**changed), "c")


@pytest.mark.parametrize("gone", ["offsets", "commits", "state"])
def test_a_directory_without_its_parts_is_no_checkpoint(gone: str) -> None:
    kept = {path: content for path, content in files().files.items() if f"/{gone}/" not in path}
    with pytest.raises(CheckpointInvalid):
        read_checkpoint(Memory(kept), "c")


def test_settings_and_store_ids_are_changed_and_nothing_else() -> None:
    changed = with_setting(OFFSETS, "spark.sql.shuffle.partitions", ROCKSDB)
    assert offset_settings(changed) == {"spark.sql.shuffle.partitions": ROCKSDB}
    assert changed.endswith(b'\n{"logOffset":0}')
    commit = with_store_ids(b'v2\n{"nextBatchWatermarkMs":5}', {"0": [["a"], ["b"]]})
    assert has_store_ids(commit)
    assert b'"nextBatchWatermarkMs": 5' in commit
    with pytest.raises(Damaged):
        has_store_ids(b"v1\n")
