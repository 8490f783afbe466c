"""What a sink may write of which relation: decided when it is created."""

from __future__ import annotations

import pytest

import laminae as lm
from laminae.catalog.updates import SetSinkProgress
from laminae.errors import InvalidOption, SecretInOption

ORDERS = "CREATE SOURCE orders (id BIGINT, customer STRING, amount INT, ts TIMESTAMP)"
VIEWS = {
    "large": "SELECT id, amount FROM orders WHERE amount > 10",
    "seen": "SELECT DISTINCT customer FROM orders",
    "both": "SELECT id FROM orders UNION ALL SELECT amount FROM orders",
    "groups": "SELECT customer FROM orders GROUP BY customer",
    "totals": "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer",
    "above": "SELECT n FROM totals",
    "above_large": "SELECT id FROM large",
}


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as found:
        found.sql(ORDERS)
        for name, query in VIEWS.items():
            found.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        yield found


def create(db, relation, mode):
    given = "" if mode is None else f", mode = '{mode}'"
    db.sql(f"CREATE SINK k FROM {relation} WITH (connector = 'console'{given})")
    return dict(db._catalog.sink("k").options).get("mode")


@pytest.mark.parametrize("relation", ["large", "seen", "both", "groups", "above_large"])
def test_a_view_that_only_adds_rows_may_be_appended(db, relation):
    assert create(db, relation, "append") == "append"


@pytest.mark.parametrize(("relation", "reason"), [("totals", "the aggregates of a group"), ("above", "rows of totals")])
def test_a_view_that_takes_rows_back_may_not_be_appended(db, relation, reason):
    with pytest.raises(InvalidOption, match=f"view {relation} retracts rows .{reason}"):
        create(db, relation, "append")
    assert db._catalog.sink("k") is None


def test_a_window_that_is_closed_may_be_appended(db):
    query = "SELECT window.end AS e, COUNT(*) AS n FROM orders GROUP BY window(ts, '1 minute')"
    db.sql("DROP SOURCE orders CASCADE")
    db.sql(ORDERS[:-1] + ", WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)")
    db.sql(f"CREATE MATERIALIZED VIEW closed AS {query} EMIT ON WINDOW CLOSE")
    assert create(db, "closed", "append") == "append"


def test_an_upsert_needs_columns_that_identify_a_row(db):
    assert create(db, "totals", "upsert") == "upsert"
    db.sql("DROP SINK k")
    with pytest.raises(InvalidOption, match="no columns of view above identify"):
        create(db, "above", "upsert")
    with pytest.raises(InvalidOption, match="source orders is append-only"):
        create(db, "orders", "upsert")


@pytest.mark.parametrize(("relation", "mode"), [("totals", "changelog"), ("large", "changelog"), ("orders", None)])
def test_a_view_is_delivered_as_its_changelog_and_a_source_as_its_rows(db, relation, mode):
    assert create(db, relation, None) == mode


TABLE = "connector = 'postgres', url = 'postgresql://u@h/d', table = 't'"


@pytest.mark.parametrize(("relation", "mode"), [("totals", "upsert"), ("orders", None), ("large", None)])
def test_a_table_is_upserted_where_a_key_identifies_rows_and_added_to_otherwise(db, relation, mode):
    db.sql(f"CREATE SINK k FROM {relation} WITH ({TABLE})")
    assert dict(db._catalog.sink("k").options).get("mode") == mode


@pytest.mark.parametrize(
    ("query", "is_kept"),
    [
        ("SELECT * FROM users WHERE city <> 'x'", True),
        ("SELECT city, id AS number FROM users", True),
        ("SELECT city FROM users", False),
        ("SELECT id + 1 AS id FROM users", False),
    ],
)
def test_rows_of_a_view_are_identified_by_the_key_of_its_source(db, query, is_kept):
    db.sql("CREATE SOURCE users (id INT, city STRING, PRIMARY KEY (id)) WITH (changelog = 'upsert')")
    db.sql(f"CREATE MATERIALIZED VIEW some AS {query}")
    if is_kept:
        assert create(db, "some", "upsert") == "upsert"
    else:
        with pytest.raises(InvalidOption, match="no columns of view some identify"):
            create(db, "some", "upsert")


def test_a_table_has_no_place_for_changes(db):
    with pytest.raises(InvalidOption, match="stores rows, not changes"):
        db.sql(f"CREATE SINK k FROM totals WITH ({TABLE}, mode = 'changelog')")
    with pytest.raises(InvalidOption, match="view above retracts rows") as told:
        db.sql(f"CREATE SINK k FROM above WITH ({TABLE})")
    assert "changelog" not in told.value.remedy


@pytest.mark.parametrize("given", ["url = 'postgresql://u@h/d'", "table = 't'"])
def test_a_table_needs_its_address_and_name(db, given):
    with pytest.raises(InvalidOption, match="it is missing"):
        db.sql(f"CREATE SINK k FROM totals WITH (connector = 'postgres', {given})")


@pytest.mark.parametrize("secret", ["url = 'postgresql://u:hunter2@h/d'", "password = 'hunter2'"])
def test_a_password_of_a_table_is_a_reference(db, secret):
    with pytest.raises(SecretInOption):
        db.sql(f"CREATE SINK k FROM totals WITH (connector = 'postgres', table = 't', {secret})")


TOPIC = "connector = 'kafka', topic = 't', kafka.bootstrap.servers = 'here:9092'"


@pytest.mark.parametrize(
    ("relation", "kind", "mode"),
    [
        ("totals", None, "upsert"),
        ("totals", "avro", "upsert"),
        ("totals", "debezium-json", "changelog"),
        ("orders", "json", None),
        ("orders", "debezium-json", None),
        ("above", "debezium-json", "changelog"),
    ],
)
def test_a_topic_holds_rows_or_events(db, relation, kind, mode):
    given = "" if kind is None else f", format = '{kind}', registry = 'http://here'"
    db.sql(f"CREATE SINK k FROM {relation} WITH ({TOPIC}{given})")
    assert dict(db._catalog.sink("k").options).get("mode") == mode


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("topic = 't'", "kafka.bootstrap.servers"),
        ("kafka.bootstrap.servers = 'here:9092'", "topic"),
        ("topic = 't', kafka.bootstrap.servers = 'h:1', format = 'avro'", "registry"),
        ("topic = 't', kafka.bootstrap.servers = 'h:1', format = 'avro', registry = 'nowhere'", "registry"),
        ("topic = 't', kafka.bootstrap.servers = 'h:1', format = 'parquet'", "format"),
        ("topic = 't', kafka.bootstrap.servers = 'h:1', mode = 'changelog'", "mode"),
    ],
)
def test_a_topic_needs_what_it_is_written_with(db, given, named):
    with pytest.raises(InvalidOption) as told:
        db.sql(f"CREATE SINK k FROM totals WITH (connector = 'kafka', {given})")
    assert told.value.params["option"] == named


def test_a_view_is_not_replaced_by_one_that_a_sink_of_it_could_not_take(db):
    create(db, "totals", "upsert")
    with pytest.raises(InvalidOption, match="no columns of view totals identify"):
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT amount AS n FROM orders")
    assert db._catalog.view("totals").query == VIEWS["totals"]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT amount, MAX(id) AS n FROM orders GROUP BY amount")


def test_a_view_is_not_replaced_under_another_whose_sink_could_not_take_what_it_becomes(db):
    create(db, "above_large", "append")
    query = "SELECT customer AS id, COUNT(*) AS n FROM orders GROUP BY customer"
    with pytest.raises(InvalidOption, match="view above_large retracts rows"):
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW large AS {query}")


def test_a_view_whose_rows_were_appended_somewhere_is_not_replaced(db):
    create(db, "large", "append")
    again = f"CREATE OR REPLACE MATERIALIZED VIEW large AS {VIEWS['large']} AND id > 1"
    db.sql(again)
    db._catalog.commit([SetSinkProgress(db._catalog.sink("k").id, 3, "live")])
    with pytest.raises(InvalidOption, match="cannot retract the rows that view large has delivered to it"):
        db.sql(again)


@pytest.mark.parametrize("made", [TABLE, TOPIC])
def test_rows_that_were_added_to_a_table_or_a_topic_are_not_taken_back_either(db, made):
    db.sql(f"CREATE SINK k FROM large WITH ({made})")
    db._catalog.commit([SetSinkProgress(db._catalog.sink("k").id, 3, "live")])
    with pytest.raises(InvalidOption, match="cannot retract"):
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW large AS {VIEWS['large']} AND id > 1")


def test_a_table_that_knows_rows_by_a_key_keeps_it(db):
    db.sql(f"CREATE SINK k FROM totals WITH ({TABLE})")
    put = "CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT "
    db.sql(f"{put} customer, MAX(id) AS n, MIN(id) AS least FROM orders GROUP BY customer")
    db._catalog.commit([SetSinkProgress(db._catalog.sink("k").id, 3, "live")])
    db.sql(f"{put} customer, MAX(id) AS n FROM orders GROUP BY customer")
    with pytest.raises(InvalidOption, match="its table is keyed by customer"):
        db.sql(f"{put} amount, MAX(id) AS n FROM orders GROUP BY amount")
