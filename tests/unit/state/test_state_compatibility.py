"""The rule book of state: what is carried over, by name or by position, and what is refused with path and remedy."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from laminae.errors import InvalidSchema, InvalidSnapshot, StateRefused
from laminae.state import RowSerializer, RowSerializerSnapshot
from laminae.state.mapping import create_field_mapping, field_lines
from laminae.state.rules import RULES, Rule

METADATA = pa.struct([("userId", pa.int32()), ("timestamp", pa.int64()), ("deviceType", pa.string())])
EVOLVED = pa.struct(
    [
        ("deviceType", pa.string()),
        ("location", pa.string()),
        ("userId", pa.int32()),
        ("timestamp", pa.int64()),
        ("appVersion", pa.string()),
        ("sessionId", pa.int64()),
    ]
)


def events(metadata: pa.DataType) -> pa.Schema:
    return pa.schema([("eventId", pa.int64()), ("metadata", metadata)])


def verdict(old: pa.Schema, new: pa.Schema, names: bool = True):
    return RowSerializer(old, with_names=names).snapshot().resolve_schema_compatibility(RowSerializer(new))


def test_the_same_schema_is_compatible_as_it_is() -> None:
    found = verdict(events(METADATA), events(METADATA))
    assert found.kind == "compatible_as_is"
    assert found.is_compatible_as_is


def test_the_evolved_events_of_the_flip_are_compatible_after_migration() -> None:
    found = verdict(events(METADATA), events(EVOLVED))
    assert found.kind == "compatible_after_migration"
    assert found.is_compatible_after_migration
    assert found.reasons == ()


def test_old_events_have_null_for_what_is_new() -> None:
    old, new = RowSerializer(events(METADATA)), RowSerializer(events(EVOLVED))
    row = {"eventId": 1, "metadata": {"userId": 7, "timestamp": 5, "deviceType": "phone"}}
    migrated = new.deserialize(old.snapshot().migrate_state(new, old.serialize(row)))
    kept = {"deviceType": "phone", "userId": 7, "timestamp": 5}
    assert migrated == {"eventId": 1, "metadata": {**kept, "location": None, "appVersion": None, "sessionId": None}}
    assert old.snapshot().migrate_element(new, row) == new.serialize(migrated)


def of(**fields: pa.DataType) -> pa.Schema:
    return pa.schema(list(fields.items()))


INT, TEXT = pa.int32(), pa.string()
REQUIRED = pa.field("b", TEXT, nullable=False)
REFUSALS = [
    ("removed", of(a=INT, b=TEXT), of(a=INT), Rule.FIELD_REMOVED, "row.b"),
    ("renamed", of(a=INT, b=TEXT), of(a=INT, c=TEXT), Rule.FIELD_RENAMED, "row.b"),
    ("renamed by case", of(city=TEXT), of(City=TEXT), Rule.FIELD_RENAMED, "row.city"),
    ("retyped", of(a=INT), of(a=TEXT), Rule.TYPE_CHANGED, "row.a"),
    ("widened", of(a=INT), of(a=pa.int64()), Rule.TYPE_CHANGED, "row.a"),
    ("required", of(a=INT), pa.schema([("a", INT), REQUIRED]), Rule.REQUIRED_ADDED, "row.b"),
    ("made required", of(b=TEXT), pa.schema([REQUIRED]), Rule.BECAME_REQUIRED, "row.b"),
    (
        "nested removal",
        events(METADATA),
        events(pa.struct([("deviceType", TEXT), ("timestamp", pa.int64())])),
        Rule.FIELD_REMOVED,
        "row.metadata.userId",
    ),
    (
        "element",
        of(a=pa.list_(pa.struct([("x", INT)]))),
        of(a=pa.list_(pa.struct([("x", TEXT)]))),
        Rule.TYPE_CHANGED,
        "row.a.element.x",
    ),
    (
        "required element",
        of(a=pa.list_(INT)),
        of(a=pa.list_(pa.field("item", INT, False))),
        Rule.BECAME_REQUIRED,
        "row.a.element",
    ),
    (
        "map key",
        of(m=pa.map_(pa.struct([("x", INT)]), INT)),
        of(m=pa.map_(pa.struct([("x", INT), ("y", INT)]), INT)),
        Rule.MAP_KEY_CHANGED,
        "row.m.key",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "rule", "path"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_what_would_lose_values_is_refused_with_path_and_remedy(
    old: pa.Schema, new: pa.Schema, rule: Rule, path: str
) -> None:
    found = verdict(old, new)
    assert found.kind == "incompatible"
    (reason,) = found.reasons
    assert (reason.rule, reason.path) == (rule, path)
    assert reason.remedy == RULES[rule].remedy
    with pytest.raises(StateRefused, match=path):
        RowSerializer(old).snapshot().migrate_states(RowSerializer(new), [])


def test_every_reason_is_given_not_only_the_first() -> None:
    found = verdict(of(a=INT, b=TEXT, c=INT), of(a=TEXT, b=INT))
    assert [reason.path for reason in found.reasons] == ["row.c", "row.a", "row.b"]


def test_a_field_that_may_be_null_now_needs_no_migration() -> None:
    assert verdict(pa.schema([REQUIRED]), of(b=TEXT)).kind == "compatible_as_is"


def test_without_names_fields_are_matched_by_position() -> None:
    assert verdict(of(a=INT, b=TEXT), of(x=INT, y=TEXT), names=False).kind == "compatible_as_is"
    assert verdict(of(a=INT), of(x=INT, y=TEXT), names=False).kind == "compatible_after_migration"
    (reason,) = verdict(of(a=INT, b=TEXT), of(n=TEXT, a=INT, b=TEXT), names=False).reasons[:1]
    assert reason.rule is Rule.POSITIONS_CHANGED
    assert verdict(of(a=INT, b=TEXT), of(a=INT), names=False).reasons[0].rule is Rule.FIELD_REMOVED


def test_a_field_mapping_names_the_old_position_of_each_new_field() -> None:
    assert create_field_mapping(("a", "b"), ("b", "n", "a"), 2, 3) == (1, -1, 0)
    assert create_field_mapping(None, ("b", "n", "a"), 2, 3) == (0, 1, -1)
    assert create_field_mapping(("sum", "sum"), ("sum", "sum"), 2, 2) == (0, 1)
    old, new = RowSerializer(of(a=INT, b=TEXT)), RowSerializer(of(b=TEXT, n=INT, a=INT))
    assert old.snapshot().create_field_mapping(new) == (1, -1, 0)


def test_the_mapping_tells_of_every_field() -> None:
    old, new = RowSerializer(events(METADATA)), RowSerializer(events(EVOLVED))
    found = old.snapshot().resolve_schema_compatibility(new)
    told = {line.path: line.origin for line in field_lines(old.struct, new.struct, found.mapping, "row")}
    assert told["row.eventId"] == "kept"
    assert told["row.metadata"] == "kept, changes inside"
    assert told["row.metadata.deviceType"] == "moved from position 3"
    assert told["row.metadata.location"] == "new, NULL"


@pytest.mark.parametrize("names", [True, False])
def test_a_snapshot_is_written_to_bytes_and_read_back(names: bool) -> None:
    snapshot = RowSerializer(events(EVOLVED), with_names=names).snapshot()
    again = RowSerializerSnapshot.from_bytes(snapshot.to_bytes())
    assert again == snapshot
    assert again.restore_serializer().struct == snapshot.struct


def test_snapshots_of_both_versions_are_still_read() -> None:
    types = b'{"type":"struct","fields":[{"name":"a","type":"integer","nullable":true,"metadata":{}}]}'
    assert not RowSerializerSnapshot.from_bytes(b"LSNP\x01\x00" + types).with_names
    assert RowSerializerSnapshot.from_bytes(b"LSNP\x02\x00" + types).with_names


@pytest.mark.parametrize(
    "written", [b"", b"LSNP", b"other bytes", b"LSNP\x09\x00{}", b"LSNP\x02\x00{", b'LSNP\x02\x00"long"']
)
def test_bytes_that_are_no_snapshot_are_refused(written: bytes) -> None:
    with pytest.raises(InvalidSnapshot):
        RowSerializerSnapshot.from_bytes(written)


def test_a_schema_with_a_name_twice_is_refused() -> None:
    with pytest.raises(InvalidSchema):
        RowSerializer(pa.schema([("a", INT), ("a", INT)]))


def test_importing_laminae_state_loads_no_spark() -> None:
    program = "import sys, laminae.state, laminae.state.serializer; print('pyspark' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
