"""Names that the system behind a sink cannot hold are refused by the statement that would bring them there."""

# ruff: noqa: S608  # the texts are made of names in this module
from __future__ import annotations

import pytest

import laminae as lm
from laminae.errors import SinkColumnRefused

AVRO = "connector = 'kafka', topic = 't', kafka.bootstrap.servers = 'b:1', format = 'avro', registry = 'http://r'"
POSTGRES = "connector = 'postgres', url = 'postgresql://h/d', table = 't'"
ICEBERG = "connector = 'iceberg', catalog = 'c', table = 'n.t', mode = 'upsert'"
SOURCE = "CREATE SOURCE s ({}, PRIMARY KEY (k)) WITH (changelog = 'upsert')"
COLUMNS = "k INT NOT NULL, a INT, st STRUCT<x: INT>"
REFUSED = {
    AVRO: ["a.b", "back`tick", "sp ace", "1digit", "${env:HOME}", "emoji\U0001f600"],
    POSTGRES: ["x" * 64, "\u00e9" * 32, "ctid", "xmin"],
}
TAKEN = {
    AVRO: ["_metadata", "caf\u00e9", "x" * 255],
    POSTGRES: ["x" * 63, "\u00e9" * 31, "XMIN", "a.b", 'dou"ble', "select"],
    ICEBERG: ["a.b", "x" * 255],
}


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as found:
        yield found


@pytest.mark.parametrize(("sink", "name"), [(sink, name) for sink, names in REFUSED.items() for name in names])
def test_create_and_alter_refuse_a_name_that_the_sink_cannot_write(db, sink, name):
    db.sql(SOURCE.format(f"{COLUMNS}, {quoted(name)} INT"))
    with pytest.raises(SinkColumnRefused, match="Sink hostile cannot write column"):
        db.sql(f"CREATE SINK hostile FROM s WITH ({sink})")
    # The remedy: a view that names it otherwise.
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT k, {quoted(name)} AS plain FROM s")
    db.sql(f"CREATE SINK plain FROM v WITH ({sink}, mode = 'upsert')")
    db.sql(f"CREATE SOURCE t ({COLUMNS}, PRIMARY KEY (k)) WITH (changelog = 'upsert')")
    db.sql("CREATE MATERIALIZED VIEW every AS SELECT * FROM t")
    db.sql(f"CREATE SINK of_source FROM t WITH ({sink})")
    db.sql("CREATE MATERIALIZED VIEW named AS SELECT k FROM t")
    db.sql(f"CREATE SINK of_named FROM named WITH ({sink}, mode = 'upsert')")
    for statement in (f"ADD COLUMN {quoted(name)} INT", f"RENAME COLUMN a TO {quoted(name)}"):
        with pytest.raises(SinkColumnRefused, match="of_source"):
            db.sql(f"ALTER SOURCE t {statement}")
    db.sql("DROP SINK of_source")
    db.sql(f"CREATE SINK of_view FROM every WITH ({sink}, mode = 'upsert')")
    with pytest.raises(SinkColumnRefused, match="of_view"):
        db.sql(f"ALTER SOURCE t ADD COLUMN {quoted(name)} INT")
    with pytest.raises(SinkColumnRefused, match="of_named"):
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW named AS SELECT k, a AS {quoted(name)} FROM t")
    assert db.version("t") == 1
    db.sql("DROP SINK of_view")
    # A view that does not take on the column does not keep it from its source.
    db.sql(f"ALTER SOURCE t ADD COLUMN {quoted(name)} INT")
    # Nor does a name that is there already keep others from coming.
    db.sql("ALTER SOURCE t ADD COLUMN other INT")


@pytest.mark.parametrize(("sink", "name"), [(sink, name) for sink, names in TAKEN.items() for name in names])
def test_a_name_that_the_sink_can_write_is_taken(db, sink, name):
    db.sql(SOURCE.format(f"{COLUMNS}, {quoted(name)} INT"))
    db.sql(f"CREATE SINK k FROM s WITH ({sink})")


def test_avro_refuses_names_inside_of_structs_and_iceberg_dots_in_keys(db):
    db.sql(SOURCE.format(f"{COLUMNS}, de ARRAY<STRUCT<`i.n`: INT>>"))
    with pytest.raises(SinkColumnRefused, match=r"de\.element\.`i\.n`"):
        db.sql(f"CREATE SINK k FROM s WITH ({AVRO})")
    db.sql("CREATE SOURCE t (`k.y` INT NOT NULL, PRIMARY KEY (`k.y`)) WITH (changelog = 'upsert')")
    with pytest.raises(SinkColumnRefused, match=r"`k\.y`: Iceberg filters read a key name with a dot"):
        db.sql(f"CREATE SINK k FROM t WITH ({ICEBERG})")
    db.sql(f"CREATE SINK i FROM s WITH ({ICEBERG})")
    with pytest.raises(SinkColumnRefused, match="Sink i"):
        db.sql("ALTER SOURCE s RENAME COLUMN k TO `k.y`")
