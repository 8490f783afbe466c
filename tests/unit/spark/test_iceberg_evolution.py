"""Every kind of change that an Iceberg table can make, under every mode: the verdict is that of the rules, live."""

import pytest
from pyiceberg.types import LongType, StringType

import laminae as lm
from laminae.errors import InvalidOption
from tests.support.following import followed
from tests.support.iceberg import put_row
from tests.support.iceberg_changes import APPLIED, COLUMNS, MODES, NOTHING, ROWS, WAITS, assert_follows, changed, create


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as database:
        yield database


@pytest.mark.parametrize("mode", range(len(MODES)), ids=MODES.__getitem__)
@pytest.mark.parametrize("row", ROWS)
def test_the_evolution_table(db, lake, row, mode):
    assert_follows(db, lake, row, mode)


def test_history_names_the_schema_of_the_table_and_who_asked(db, lake):
    table = put_row(lake.table("orders", COLUMNS))
    create(db, lake)
    followed(db, 0)
    ROWS["rename"][0](table)
    put_row(table)
    followed(db, 1)
    last = db.history("s")[-1]
    told = (last.version, last.change_type, last.column_name, last.trigger, last.schema_id)
    assert told == (3, "ColumnRenamed", "text", "CatalogRefresh", 1)


def test_a_source_with_fewer_wider_and_own_columns_keeps_them(db, lake):
    table = put_row(lake.table("orders", COLUMNS))
    create(db, lake, "key STRING, amount DOUBLE, id BIGINT, op STRING", changelog="retract", op_field="op")
    assert followed(db, 0) == APPLIED
    changed(lambda u: u.update_column("amount", LongType()).rename_column("note", "key"))(table)
    put_row(table)
    assert followed(db, 1) == NOTHING
    changed(lambda u: u.rename_column("id", "number").add_column("city", StringType()))(table)
    put_row(table)
    assert followed(db, 2) == APPLIED
    found = {field.name: str(field.type) for field in db.schema("s")}
    assert found == {"key": "string", "amount": "double", "number": "int64", "op": "string", "city": "string"}


def test_several_schemas_in_one_range_are_one_step(db, lake):
    table = put_row(lake.table("orders", COLUMNS))
    create(db, lake)
    assert followed(db, 0) == APPLIED
    for row in ("rename", "rename and promote", "add, nullable"):
        ROWS[row][0](table)
        put_row(table)
    assert followed(db, 1) == APPLIED
    assert db.schema("s").names == ["id", "cents", "rate", "text", "city"]
    assert db.version("s") == 3


def test_columns_are_known_by_the_names_that_they_have_or_had(db, lake):
    """The table may have been changed before the source is first read, and no snapshot need be of its last schema."""
    table = put_row(lake.table("orders", COLUMNS))
    ROWS["rename and promote"][0](table)
    put_row(table)
    ROWS["rename"][0](table)
    create(db, lake, "amount BIGINT, text STRING, own STRING")
    assert followed(db, 0) == APPLIED
    numbers = [(field.metadata or {}).get(b"PARQUET:field_id") for field in db.schema("s")]
    assert (db.schema("s").names, numbers) == (["amount", "text", "own"], [b"2", b"4", None])


def test_confirm_lets_every_change_wait(db, lake):
    table = put_row(lake.table("orders", COLUMNS))
    create(db, lake)
    followed(db, 0)
    db.sql("ALTER SOURCE s SET (evolve = 'confirm')")
    ROWS["rename"][0](table)
    put_row(table)
    assert followed(db, 1) == WAITS
    ((change_id,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change_id}")
    assert db.schema("s").names == ["id", "amount", "rate", "text"]


def test_refresh_takes_what_the_table_has_now(db, lake):
    table = lake.table("orders", COLUMNS)
    create(db, lake, "id INT, op STRING", changelog="retract", op_field="op")
    assert db.sql("ALTER SOURCE s REFRESH SCHEMA").fetchall()[0][0] == "applied"
    assert db.schema("s").names == ["id", "amount", "rate", "note", "op"]
    assert str(db.schema("s").field("id").type) == "int64"
    ROWS["rename and promote"][0](table)
    assert db.sql("ALTER SOURCE s REFRESH SCHEMA").fetchall()[0][0] == "applied"
    assert db.schema("s").names == ["id", "cents", "rate", "note", "op"]
    ROWS["drop"][0](table)
    assert db.sql("ALTER SOURCE s REFRESH SCHEMA").fetchall()[0][0] == "waiting"
    put_row(table)
    assert followed(db, 0) == NOTHING


def test_what_a_table_cannot_be_is_refused(db, lake):
    lake.table("orders", COLUMNS)
    create(db, lake, "id BIGINT", version_field="id")
    with pytest.raises(InvalidOption, match="version_field"):
        followed(db, 0)
