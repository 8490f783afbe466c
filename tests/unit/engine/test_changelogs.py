"""What a source needs for the changelog that its options ask for."""

from __future__ import annotations

import pyarrow as pa
import pytest

import laminae as lm
from laminae.engine.changelogs import OWN_NAMES, check_changelog
from laminae.engine.source_spec import Changelog, parse_options
from laminae.errors import DependentsExist, InvalidOption, InvalidSchema
from laminae.schema.types import VARIANT
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
        ({"changelog": "debezium", "format": "avro"}, (1,)),
        ({"changelog": "debezium", "format": "avro"}, ()),
        ({"format": "debezium-json", "sequence_by": "ts_ms"}, ()),
        ({"format": "debezium-json", "debezium.time": "millis", "debezium.decimal": "text"}, (1,)),
        ({}, ()),
    ],
)
def test_changelogs_that_the_columns_can_give(options, key):
    check_changelog("s", SCHEMA, tuple(options.items()), key)


@pytest.mark.parametrize("name", OWN_NAMES)
@pytest.mark.parametrize("kind", ["upsert", "debezium"])
def test_a_table_has_columns_of_its_own(name, kind):
    with pytest.raises(InvalidSchema, match="a column of its own by this name"):
        check_changelog("s", pa.schema([*SCHEMA, col(name, "string", id=5)]), (("changelog", kind),), (1,))


@pytest.mark.parametrize(
    ("options", "key", "told"),
    [
        ({"changelog": "upsert"}, (), "needs a PRIMARY KEY"),
        ({"format": "debezium-json", "deleted_by": "gone"}, (), "it has no effect with changelog = 'debezium'"),
        ({"format": "debezium-json", "weight_field": "w"}, (), "it has no effect with changelog = 'debezium'"),
        ({"format": "debezium-json", "op_field": "name"}, (), "it has no effect with changelog = 'debezium'"),
        ({"format": "debezium-json", "version_field": "w"}, (), "the rows of events have no such field"),
        ({"format": "debezium-json", "sequence_by": "a.b.c"}, (), "it names no field of an event"),
        ({"changelog": "upsert", "deleted_by": "name"}, (1,), "name is not BOOLEAN"),
        ({"changelog": "upsert", "sequence_by": "nothing"}, (1,), "there is no column nothing"),
        ({"deleted_by": "gone"}, (1,), "it has no effect with changelog = 'append'"),
        ({"changelog": "upsert", "debezium.time": "millis"}, (1,), "it has no effect with changelog = 'upsert'"),
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
    assert parse_options((("format", "debezium-json"),)).changelog is Changelog.DEBEZIUM
    with pytest.raises(InvalidSchema, match="_op"):
        check_changelog("s", pa.schema([NAME.with_name("_op")]), (("changelog", "debezium"),), ())
    # Without a key the row before an event is whole.
    check_changelog("s", pa.schema([KEY, NAME.with_nullable(False)]), (("changelog", "debezium"),), ())


NESTED = {
    "VARIANT": VARIANT,
    "STRUCT<v: VARIANT>": pa.struct([pa.field("v", VARIANT)]),
    "ARRAY<VARIANT>": pa.list_(VARIANT),
}


@pytest.mark.parametrize("kind", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("options", [{"changelog": "upsert"}, {"format": "debezium-json"}], ids=["upsert", "debezium"])
def test_a_table_has_no_variant(options, kind):
    schema = pa.schema([KEY, col("data", kind, id=5)])
    with pytest.raises(InvalidSchema, match="declare it as STRING"):
        check_changelog("s", schema, tuple(options.items()), (1,))
    check_changelog("s", schema, (), (1,))


@pytest.mark.parametrize("options", ["format = 'debezium-json', evolve = 'auto'", "changelog = 'upsert'"])
def test_a_table_has_a_column(tmp_path, options):
    with lm.connect(str(tmp_path)) as db:
        with pytest.raises(InvalidSchema, match="at least one"):
            db.sql(f"CREATE SOURCE s WITH ({options})")
        db.sql("CREATE SOURCE s WITH (evolve = 'auto')")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("ADD COLUMN data VARIANT", "declare it as STRING"),
        ("ADD COLUMN data STRUCT<v: VARIANT>", "declare it as STRING"),
        ("ADD COLUMN _Op STRING", "a column of its own by this name"),
        ("RENAME COLUMN name TO _epoch", "a column of its own by this name"),
        ("ALTER COLUMN name SET NOT NULL", "cannot be NOT NULL"),
    ],
)
def test_what_a_table_cannot_have_does_not_come_by_a_change_either(tmp_path, change, told):
    with lm.connect(str(tmp_path)) as db:
        db.sql("CREATE SOURCE s (id INT, name STRING, PRIMARY KEY (id)) WITH (format = 'debezium-json')")
        before = db.schema("s")
        with pytest.raises(InvalidSchema, match=told):
            db.sql(f"ALTER SOURCE s {change}")
        assert db.schema("s") == before


@pytest.mark.parametrize(
    ("columns", "options", "column", "user"),
    [
        ("PRIMARY KEY (id)", "changelog = 'upsert', sequence_by = 'w'", "w", "sequence_by"),
        ("PRIMARY KEY (id)", "changelog = 'upsert', deleted_by = 'gone'", "gone", "deleted_by"),
        (None, "changelog = 'retract', weight_field = 'w'", "w", "weight_field"),
        (None, "changelog = 'retract', op_field = 'name'", "name", "op_field"),
    ],
)
def test_a_column_that_an_option_names_cannot_be_dropped_whatever_it_is_called_now(
    tmp_path, columns, options, column, user
):
    with lm.connect(str(tmp_path)) as db:
        listed = ", ".join(filter(None, ["id BIGINT, name STRING, gone BOOLEAN, w BIGINT, other INT", columns]))
        db.sql(f"CREATE SOURCE s ({listed}) WITH ({options})")
        db.sql(f"ALTER SOURCE s RENAME COLUMN {column} TO renamed")
        with pytest.raises(DependentsExist, match=f"the option {user} of s"):
            db.sql("ALTER SOURCE s DROP COLUMN renamed")
        db.sql("ALTER SOURCE s DROP COLUMN other")
        assert "renamed" in db.schema("s").names
