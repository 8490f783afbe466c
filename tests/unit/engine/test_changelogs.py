"""What a source needs for the changelog that its options ask for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laminae.engine.changelogs import DEBEZIUM, changelog_of, check_changelog
from laminae.errors import InvalidOption, InvalidSchema
from tests.support.build import col

KEY, NAME, GONE, WEIGHT = (
    col("id", "bigint", id=1, null=False),
    col("name", "string", id=2),
    col("gone", pa.bool_(), id=3),
    col("w", "bigint", id=4),
)
SCHEMA = pa.schema([KEY, NAME, GONE, WEIGHT])


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"changelog": "upsert", "deleted_by": "gone", "sequence_by": "w"}, (1,)),
        ({"changelog": "retract", "weight_field": "w"}, ()),
        ({"changelog": "retract", "op_field": "name"}, (1,)),
        ({"format": "debezium-json"}, (1,)),
        ({"changelog": "debezium", "sequence_by": "source.pos"}, (1,)),
        ({}, ()),
    ],
)
def test_changelogs_that_the_columns_can_give(options, key):
    check_changelog("s", SCHEMA, tuple(options.items()), key)


@pytest.mark.parametrize(
    ("options", "key", "told"),
    [
        ({"changelog": "upsert"}, (), "needs a PRIMARY KEY"),
        ({"format": "debezium-json"}, (), "needs a PRIMARY KEY"),
        ({"changelog": "upsert", "deleted_by": "name"}, (1,), "name is no BOOLEAN"),
        ({"changelog": "upsert", "sequence_by": "nothing"}, (1,), "there is no column nothing"),
        ({"deleted_by": "gone"}, (1,), "it means nothing with changelog = 'append'"),
        ({"changelog": "retract"}, (), "one of weight_field and op_field"),
        ({"changelog": "retract", "weight_field": "name"}, (), "name is not an integer"),
        ({"changelog": "retract", "weight_field": "id"}, (), "id is NULL in every row"),
        ({"changelog": "debezium", "format": "csv"}, (1,), "csv does not go with"),
        ({"changelog": "append", "format": "debezium-json"}, (1,), "debezium-json does not go with"),
        ({"changelog": "debezium", "sequence_by": "a.b.c"}, (1,), "it names no field of an event"),
    ],
)
def test_changelogs_that_they_cannot(options, key, told):
    with pytest.raises(InvalidOption, match=told):
        check_changelog("s", SCHEMA, tuple(options.items()), key)


def test_names_and_columns_that_events_leave_no_room_for():
    with pytest.raises(InvalidSchema, match="_weight"):
        check_changelog("s", pa.schema([KEY, WEIGHT.with_name("_weight")]), (("changelog", "upsert"),), (1,))
    with pytest.raises(InvalidSchema, match="cannot be NOT NULL"):
        check_changelog("s", pa.schema([KEY, NAME.with_nullable(False)]), (("changelog", "debezium"),), (1,))
    assert changelog_of((("format", "debezium-json"),)) == DEBEZIUM
