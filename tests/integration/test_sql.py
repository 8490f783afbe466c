"""SQL against a real home: every statement through parser, engine and catalog. The names of seed 000 stand first."""

import traceback
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import laminae as lm
from laminae.catalog import open_catalog
from laminae.engine.engine import Engine
from laminae.engine.ports import FoundSchema
from laminae.errors import (
    ChangeNotPending,
    ConcurrentChange,
    DependentsExist,
    DuplicateColumn,
    DuplicateObject,
    EvolutionRejected,
    HomeUnwritable,
    IncompatibleChange,
    InferenceFailed,
    InvalidDefault,
    InvalidName,
    InvalidOption,
    InvalidSchema,
    LaminaeError,
    NotAvailable,
    QueryFailed,
    SecretInOption,
    UnknownColumn,
    UnknownObject,
    UnsupportedSql,
)
from laminae.schema.evolvable import Applied, EvolutionTrigger, NeedsConfirmation, NoChange, Rejected
from laminae.sql import parse
from tests.support.build import col, schema


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as database:
        database.sql("CREATE SOURCE orders (id BIGINT NOT NULL, amount INT, note STRING, PRIMARY KEY (id))")
        yield database


def names(db, source="orders"):
    return db.schema(source).names


def test_alter_source_add_column(db):
    db.sql(
        "ALTER SOURCE orders ADD COLUMN exchange VARCHAR; ALTER SOURCE orders ADD COLUMN currency VARCHAR DEFAULT 'USD'"
    )
    assert names(db) == ["id", "amount", "note", "exchange", "currency"]
    assert db.version("orders") == 3
    described = {row[0]: row for row in db.sql("DESCRIBE SOURCE orders").fetchall()}
    assert described["currency"][1:4] == ("STRING", True, '"USD"')


def test_alter_source_drop_column(db):
    db.sql("ALTER SOURCE orders DROP COLUMN note")
    assert names(db) == ["id", "amount"]


def test_alter_source_widen_type(db):
    db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
    assert db.schema("orders").field("amount").type == pa.int64()


def test_schema_history_query(db):
    db.sql("ALTER SOURCE orders ADD COLUMN c STRING DEFAULT 'x'; ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
    answer = db.sql(
        "SELECT version, change_type, column_name, old_type, new_type, `default` FROM laminar_catalog.schema_history "
        "WHERE source_name = 'orders' ORDER BY version DESC LIMIT 2"
    )
    assert answer.columns == ["version", "change_type", "column_name", "old_type", "new_type", "default"]
    assert answer.fetchall() == [
        (3, "TypeWidened", "amount", "INT", "BIGINT", None),
        (2, "ColumnAdded", "c", None, "STRING", '"x"'),
    ]


def test_incompatible_rejected(db):
    db.sql("ALTER SOURCE orders SET COMPATIBILITY = FULL")
    with pytest.raises(IncompatibleChange, match="amount: narrow type"):
        db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE SMALLINT")
    assert db.version("orders") == 1


def test_transitive_compatibility(db):
    db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT; ALTER SOURCE orders SET COMPATIBILITY = FULL")
    db.sql("ALTER SOURCE orders ADD COLUMN fits_the_latest INT")
    db.sql("ALTER SOURCE orders SET COMPATIBILITY = FULL_TRANSITIVE")
    with pytest.raises(EvolutionRejected, match="against version 1") as refused:
        db.sql("ALTER SOURCE orders ADD COLUMN does_not_fit_version_one INT")
    assert "amount: widen type" in refused.value.message


class Registry:
    """A finder that answers with what the test put into it."""

    def __init__(self):
        self.found = None

    def find(self, source):
        if self.found is None:
            raise InferenceFailed(source=source.name, problem="the registry is empty")
        return self.found


@pytest.fixture
def refreshable(tmp_path):
    catalog = open_catalog(str(tmp_path / "home"))
    registry = Registry()
    engine = Engine(catalog, {"files": registry}, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    engine.run(
        *parse("CREATE SOURCE f (id BIGINT, a INT) WITH (connector = 'files', path = 'in', compatibility = 'BACKWARD')")
    )
    yield engine, registry, catalog
    catalog.close()


def test_refresh_schema(refreshable):
    engine, registry, catalog = refreshable
    registry.found = FoundSchema(
        schema(col("id", "bigint"), col("a", "bigint"), col("b")), schema_id=7, registry_version=2
    )
    plan = engine.run(*parse("ALTER SOURCE f REFRESH SCHEMA"))
    assert plan.version == 2
    assert [(row.change_type, row.column_name, row.trigger, row.schema_id) for row in catalog.history("f")][2:] == [
        ("TypeWidened", "a", "ManualRefresh", 7),
        ("ColumnAdded", "b", "ManualRefresh", 7),
    ]
    assert engine.run(*parse("ALTER SOURCE f REFRESH SCHEMA")).outcome.value == "changes nothing"


def test_refresh_of_a_source_without_a_schema_of_its_own_says_so(db):
    with pytest.raises(NotAvailable, match="connector push has no external schema"):
        db.sql("ALTER SOURCE orders REFRESH SCHEMA")


def test_refresh_that_finds_nothing_changes_nothing(refreshable):
    engine, _, catalog = refreshable
    with pytest.raises(InferenceFailed):
        engine.run(*parse("ALTER SOURCE f REFRESH SCHEMA"))
    assert catalog.source("f").version == 1


def test_found_changes_are_applied_refused_or_wait(refreshable):
    engine, _, catalog = refreshable
    same = FoundSchema(schema(col("id", "bigint"), col("a", "int")))
    wider = FoundSchema(schema(col("id", "bigint"), col("a", "bigint")))
    narrower = FoundSchema(schema(col("id", "int"), col("a", "bigint")))
    assert isinstance(engine.propose("f", same, EvolutionTrigger.DATA), NoChange)
    applied = engine.propose("f", wider, EvolutionTrigger.DATA)
    assert isinstance(applied, Applied)
    assert applied.version == 2
    assert isinstance(engine.propose("f", narrower, EvolutionTrigger.DATA), Rejected)
    assert '"verdict": "incompatible"' in catalog.source("f").last_verdict


def test_a_pending_change_is_listed_confirmed_once_and_bound_to_its_version(refreshable):
    engine, _, catalog = refreshable
    engine.run(*parse("ALTER SOURCE f SET COMPATIBILITY = NONE"))
    dropped = FoundSchema(schema(col("id", "bigint")))
    first = engine.propose("f", dropped, EvolutionTrigger.DATA)
    again = engine.propose("f", dropped, EvolutionTrigger.DATA)
    assert isinstance(first, NeedsConfirmation)
    assert first.change_id == again.change_id
    engine.run(*parse(f"ALTER SOURCE f CONFIRM CHANGE {first.change_id}"))
    assert catalog.source("f").schema.names == ["id"]
    with pytest.raises(ChangeNotPending, match="it was confirmed"):
        engine.run(*parse(f"ALTER SOURCE f CONFIRM CHANGE {first.change_id}"))


def test_ids_from_outside_are_not_trusted_and_defaults_declared_here_stay(refreshable):
    engine, _, catalog = refreshable
    engine.run(*parse("ALTER SOURCE f ALTER COLUMN a SET DEFAULT 3"))
    found = FoundSchema(schema(col("id", "bigint"), col("a", "int"), col("b", "int", id=99)))
    assert isinstance(engine.propose("f", found, EvolutionTrigger.DATA), Applied)
    current = catalog.source("f").schema
    assert current.field("b").metadata[b"laminae:id"] == b"3"
    assert current.field("a").metadata[b"laminae:default"] == b"3"


def test_a_pending_change_is_bound_to_all_of_its_diff(refreshable):
    engine, _, _ = refreshable
    engine.run(*parse("ALTER SOURCE f SET COMPATIBILITY = NONE"))
    orders = [schema(col("d"), col("id", "bigint")), schema(col("id", "bigint"), col("d"))]
    first, second = (engine.propose("f", FoundSchema(order), EvolutionTrigger.DATA) for order in orders)
    assert first.change_id != second.change_id


def test_a_mode_changed_between_plan_and_commit_is_noticed(refreshable):
    engine, _, _ = refreshable
    plan = engine.plan(*parse("ALTER SOURCE f ALTER COLUMN a TYPE BIGINT"))
    engine.run(*parse("ALTER SOURCE f SET COMPATIBILITY = FULL"))
    with pytest.raises(ConcurrentChange):
        engine.execute(plan)


def test_a_rejected_change_is_gone_and_a_newer_version_supersedes_what_waited(refreshable):
    engine, _, catalog = refreshable
    engine.run(*parse("ALTER SOURCE f SET COMPATIBILITY = NONE"))
    waiting = engine.propose("f", FoundSchema(schema(col("id", "bigint"))), EvolutionTrigger.DATA)
    engine.run(*parse(f"ALTER SOURCE f REJECT CHANGE {waiting.change_id}"))
    assert catalog.source("f").version == 1
    other = engine.propose("f", FoundSchema(schema(col("a", "int"))), EvolutionTrigger.DATA)
    engine.run(*parse("ALTER SOURCE f ADD COLUMN z INT"))
    with pytest.raises(ChangeNotPending, match="superseded"):
        engine.run(*parse(f"ALTER SOURCE f CONFIRM CHANGE {other.change_id}"))


def test_a_change_found_again_after_its_rejection_stays_rejected(refreshable):
    engine, _, _ = refreshable
    engine.run(*parse("ALTER SOURCE f SET COMPATIBILITY = NONE"))
    dropped = FoundSchema(schema(col("id", "bigint")))
    waiting = engine.propose("f", dropped, EvolutionTrigger.DATA)
    engine.run(*parse(f"ALTER SOURCE f REJECT CHANGE {waiting.change_id}"))
    assert isinstance(engine.propose("f", dropped, EvolutionTrigger.DATA), Rejected)
    engine.run(*parse("ALTER SOURCE f ADD COLUMN z INT"))
    assert isinstance(engine.propose("f", dropped, EvolutionTrigger.DATA), NeedsConfirmation)


def test_confirming_what_does_not_exist_says_so(db):
    with pytest.raises(ChangeNotPending, match="no such change"):
        db.sql("ALTER SOURCE orders CONFIRM CHANGE 99")


def test_pending_changes_are_a_relation(tmp_path, refreshable):
    engine, _, _ = refreshable
    engine.run(*parse("ALTER SOURCE f SET COMPATIBILITY = NONE"))
    engine.propose("f", FoundSchema(schema(col("id", "bigint"))), EvolutionTrigger.DATA)
    with lm.connect(str(tmp_path / "home")) as db:
        rows = db.sql("SELECT source_name, base_version, changes FROM laminar_catalog.pending_changes").fetchall()
    assert rows == [("f", 1, "a: drop INT")]


def test_force_is_recorded_in_the_history(db):
    db.sql("ALTER SOURCE orders SET COMPATIBILITY = BACKWARD; ALTER SOURCE orders DROP COLUMN note FORCE")
    assert [(row.change_type, row.forced) for row in db.history("orders")][-1] == ("ColumnDropped", True)


def test_version_one_lists_the_columns_of_the_create(db):
    assert [(row.version, row.change_type, row.column_name, row.trigger) for row in db.history("orders")] == [
        (1, "ColumnAdded", name, "Created") for name in ("id", "amount", "note")
    ]


def test_a_column_dropped_and_added_again_has_another_id(db):
    before = db.schema("orders").field("note").metadata[b"laminae:id"]
    db.sql("ALTER SOURCE orders DROP COLUMN note; ALTER SOURCE orders ADD COLUMN note STRING")
    assert db.schema("orders").field("note").metadata[b"laminae:id"] != before


def test_nested_columns_are_altered_by_path(db):
    db.sql(
        """CREATE SOURCE n (m STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT>>, p MAP<STRING, STRUCT<y: INT>>);
        ALTER SOURCE n ADD COLUMN m.c DOUBLE DEFAULT 0.5 FIRST;
        ALTER SOURCE n RENAME COLUMN l.element.x TO xx;
        ALTER SOURCE n ALTER COLUMN p.value.y TYPE BIGINT;
        ALTER SOURCE n DROP COLUMN m.b;
        ALTER SOURCE n ALTER COLUMN m.a SET NOT NULL"""
    )
    assert [(row.change_type, row.column_name) for row in db.history("n") if row.version > 1] == [
        ("ColumnAdded", "m.c"),
        ("ColumnRenamed", "l.element.xx"),
        ("TypeWidened", "p.value.y"),
        ("ColumnDropped", "m.b"),
        ("NullabilityChanged", "m.a"),
    ]
    described = [row[0] for row in db.sql("DESCRIBE SOURCE n").fetchall()]
    assert described[:3] == ["m", "m.c", "m.a"]


def test_retyping_a_struct_keeps_the_ids_of_its_fields(db):
    db.sql("CREATE SOURCE n (m STRUCT<a: INT, b: STRING>)")
    before = db.schema("n").field("m").type.field("a").metadata
    db.sql("ALTER SOURCE n ALTER COLUMN m TYPE STRUCT<b: STRING, a: BIGINT, c: DOUBLE>")
    after = db.schema("n").field("m").type
    assert after.field("a").metadata == before
    assert [row.change_type for row in db.history("n") if row.version == 2] == [
        "TypeWidened",
        "ColumnAdded",
        "ColumnMoved",
    ]


def test_first_and_after_place_columns(db):
    db.sql(
        "ALTER SOURCE orders ADD COLUMN a INT FIRST; ALTER SOURCE orders ADD COLUMN b INT AFTER id;"
        "ALTER SOURCE orders ALTER COLUMN note FIRST; ALTER SOURCE orders ALTER COLUMN note AFTER note"
    )
    assert names(db) == ["note", "a", "id", "b", "amount"]


def test_defaults_are_set_and_dropped(db):
    db.sql("ALTER SOURCE orders ALTER COLUMN amount SET DEFAULT 5")
    assert db.schema("orders").field("amount").metadata[b"laminae:default"] == b"5"
    db.sql("ALTER SOURCE orders ALTER COLUMN amount DROP DEFAULT")
    assert b"laminae:default" not in db.schema("orders").field("amount").metadata


@pytest.mark.parametrize(
    ("column", "alter"),
    [
        ("x ARRAY<INT> DEFAULT ARRAY(1, 2)", "ALTER COLUMN x.element TYPE STRING"),
        ("x ARRAY<INT> DEFAULT ARRAY(1, NULL)", "ALTER COLUMN x.element SET NOT NULL"),
        ("x STRING DEFAULT 'aGk='", "ALTER COLUMN x TYPE BINARY"),
        ("x STRING DEFAULT 'NaN'", "ALTER COLUMN x TYPE DOUBLE"),
    ],
)
def test_a_default_never_stops_fitting_and_never_changes_its_meaning(db, column, alter):
    db.sql(f"CREATE SOURCE d (k INT, {column})")
    with pytest.raises(InvalidDefault):
        db.sql(f"ALTER SOURCE d {alter}")
    assert db.version("d") == 1


def test_a_default_follows_its_column_to_a_wider_type(db):
    db.sql("CREATE SOURCE d (k INT DEFAULT 7); ALTER SOURCE d ALTER COLUMN k TYPE BIGINT")
    assert db.schema("d").field("k").metadata[b"laminae:default"] == b"7"


def test_the_key_of_a_map_is_never_null(db):
    db.sql("CREATE SOURCE d (m MAP<STRING, INT>)")
    with pytest.raises(InvalidSchema, match="never NULL"):
        db.sql("ALTER SOURCE d ALTER COLUMN m.key DROP NOT NULL")


@pytest.mark.parametrize(
    ("mode", "steps", "allowed"),
    [
        ("FORWARD_TRANSITIVE", ["DROP COLUMN a", "ADD COLUMN n INT"], True),
        ("FORWARD_TRANSITIVE", ["DROP COLUMN a", "ADD COLUMN a STRING"], True),
        ("BACKWARD_TRANSITIVE", ["DROP COLUMN a FORCE", "ADD COLUMN a INT"], False),
    ],
)
def test_transitive_modes_tell_a_column_added_again_from_the_one_dropped(db, mode, steps, allowed):
    db.sql(f"CREATE SOURCE t (id INT, a INT) WITH (compatibility = '{mode}')")
    for step in steps[:-1]:
        db.sql(f"ALTER SOURCE t {step}")
    if allowed:
        db.sql(f"ALTER SOURCE t {steps[-1]}")
    else:
        with pytest.raises(EvolutionRejected, match="drop"):
            db.sql(f"ALTER SOURCE t {steps[-1]}")


def test_a_view_that_selects_everything_also_reads_what_comes_later(db):
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM orders; ALTER SOURCE orders ADD COLUMN later INT")
    with pytest.raises(DependentsExist, match="materialized view v"):
        db.sql("ALTER SOURCE orders DROP COLUMN later")
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM orders; DROP MATERIALIZED VIEW v")
    db.sql("ALTER SOURCE orders DROP COLUMN later")


def test_if_exists_and_if_not_exists_leave_things_as_they_are(db):
    for text in (
        "ALTER SOURCE orders ADD COLUMN IF NOT EXISTS note INT",
        "ALTER SOURCE orders DROP COLUMN IF EXISTS nope",
        "CREATE SOURCE IF NOT EXISTS orders (x INT)",
        "DROP SOURCE IF EXISTS nope",
    ):
        assert db.sql(text).fetchone()[0] == "unchanged"
    assert db.version("orders") == 1


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("ALTER SOURCE order ADD COLUMN c INT", UnknownObject),
        ("ALTER SOURCE orders DROP COLUMN amuont", UnknownColumn),
        ("ALTER SOURCE orders ADD COLUMN amount.x INT", UnknownColumn),
        ("ALTER SOURCE orders ADD COLUMN c INT AFTER nope", UnknownColumn),
        ("ALTER SOURCE orders ADD COLUMN AMOUNT INT", DuplicateColumn),
        ("ALTER SOURCE orders RENAME COLUMN note TO amount", DuplicateColumn),
        ("CREATE SOURCE orders (x INT)", DuplicateObject),
        ("CREATE SOURCE ORDERS (x INT)", DuplicateObject),
        ("CREATE SOURCE d (x INT, X INT)", DuplicateColumn),
        ("CREATE SOURCE laminar_catalog (x INT)", InvalidName),
        ("CREATE SOURCE ` ` (x INT)", InvalidName),
        ("CREATE SOURCE d (x INT DEFAULT 'x')", InvalidDefault),
        ("CREATE SOURCE d (x TINYINT DEFAULT 300)", InvalidDefault),
        ("CREATE SOURCE d (x INT NOT NULL DEFAULT NULL)", InvalidDefault),
        ("ALTER SOURCE orders ADD COLUMN c DECIMAL(4, 2) DEFAULT 123.45", InvalidDefault),
        ("CREATE SOURCE d (x INT, PRIMARY KEY (y))", UnknownColumn),
        ("CREATE SOURCE d (x ARRAY<INT>, PRIMARY KEY (x))", InvalidSchema),
        ("CREATE SOURCE d (x INT, WATERMARK FOR x AS x - INTERVAL '5' SECOND)", InvalidSchema),
        ("CREATE SOURCE d (x INT) WITH (conector = 'push')", InvalidOption),
        ("CREATE SOURCE d (x INT) WITH (connector = 'pigeon')", InvalidOption),
        ("CREATE SOURCE d (x INT) WITH (max_new_columns = 'many')", InvalidOption),
        ("CREATE SOURCE d (ts TIMESTAMP) WITH (max_future = '1 minute')", InvalidOption),
        ("ALTER SOURCE orders SET (max_future = '1 minute')", InvalidOption),
        ("ALTER SOURCE orders SET (connector = 'files')", InvalidOption),
        ("CREATE SOURCE d (x INT) WITH (connector = 'kafka', kafka.ssl.password = 'hunter2')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (registry = 'http://me:hunter2@127.0.0.1')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (registry = 'http://127.0.0.1?api_key=hunter2')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (registry.basic.auth.user.info = 'me:hunter2')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (kafka.ssl.keystore.key = '-----BEGIN hunter2')", SecretInOption),
        (
            'CREATE SOURCE d (x INT) WITH (kafka.sasl.jaas.config = \'x user="${env:U}" password="hunter2";\')',
            SecretInOption,
        ),
        ("CREATE SINK k FROM orders WITH (connector='postgres', url='jdbc:x?user=u&password=hunter2')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (kafka.ssl.key.passphrase = 'hunter2')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (fs.account.key.acct.example = 'hunter2')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (http.header = 'Bearer hunter2hunter2')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (registry = 'http://u:p/hunter2@127.0.0.1/')", SecretInOption),
        ("CREATE SOURCE d (x INT) WITH (registry = 'http://u:hunter2@127.0.0.1/' oops", LaminaeError),
        ("CREATE SOURCE d (x INT) WITH (`basic.auth.user.info` = 'u:hunter2' oops", LaminaeError),
        ("SELECT * FROM read_csv('s3://k:hunter2@b/')", LaminaeError),
        ("CREATE MATERIALIZED VIEW v AS SELECT id FROM other.orders", UnknownObject),
        ("CREATE SINK k FROM orders", InvalidOption),
        ("CREATE SINK k FROM nope WITH (connector = 'console')", UnknownObject),
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM nope", UnknownObject),
        ("CREATE MATERIALIZED VIEW v AS SELECT FROM WHERE", QueryFailed),
        ("CREATE MATERIALIZED VIEW v AS SELECT o.id FROM orders o CROSS JOIN orders p", UnsupportedSql),
        ("CREATE MATERIALIZED VIEW v AS SELECT sum(id) OVER (PARTITION BY note) FROM orders", UnsupportedSql),
        ("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders ORDER BY id", UnsupportedSql),
        ("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders LIMIT 3", UnsupportedSql),
        ('CREATE MATERIALIZED VIEW v AS SELECT orders."id" FROM orders', QueryFailed),
        ('SELECT sources."name" FROM laminar_catalog.sources', QueryFailed),
        ("EXPLAIN SELECT * FROM nope", UnknownObject),
        ("EXPLAIN DESCRIBE SOURCE nope", UnknownObject),
        ("SET no.such.setting = 1", InvalidOption),
        ("SELECT * FROM nope", UnknownObject),
        ("SELECT * FROM laminar_catalog.nope", UnknownObject),
        ("SELECT nope FROM laminar_catalog.sources", QueryFailed),
        ("DROP SOURCE orders; SELECT id id id FROM orders", QueryFailed),
        ("SELECT", QueryFailed),
        ("DESCRIBE SOURCE nope", UnknownObject),
        ("DROP SINK nope", UnknownObject),
        ("ALTER MATERIALIZED VIEW nope RESUME", UnknownObject),
    ],
)
def test_wrong_use_is_refused_and_changes_nothing(db, statement, error):
    before = db.sql("SELECT * FROM laminar_catalog.schema_history").fetchall()
    with pytest.raises(error) as refused:
        db.sql(statement)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value)).replace(statement, "")
    assert refused.value.remedy
    assert db.sql("SELECT * FROM laminar_catalog.schema_history").fetchall() == before


@pytest.mark.parametrize("ask", ["history", "version", "schema", "dead_letters"])
@pytest.mark.parametrize("name", [5, None, b"orders"], ids=repr)
def test_a_name_that_is_no_text_is_refused_as_such(db, ask, name):
    with pytest.raises(InvalidName, match=f"it is of type {type(name).__name__}, not text"):
        getattr(db, ask)(name)


def test_a_dropped_source_is_told_from_one_that_never_was(db):
    db.sql("DROP SOURCE orders")
    with pytest.raises(UnknownObject, match="a source of this name was dropped at"):
        db.history("ORDERS")
    db.sql("CREATE SOURCE orders (id BIGINT)")
    assert [row.column_name for row in db.history("orders")] == ["id"]


def test_an_unknown_name_comes_with_a_suggestion(db):
    with pytest.raises(UnknownObject, match="did you mean orders"):
        db.sql("DESCRIBE SOURCE ordrs")
    with pytest.raises(UnknownColumn, match="did you mean amount"):
        db.sql("ALTER SOURCE orders DROP COLUMN Amount")


def test_a_text_that_does_not_parse_runs_none_of_its_statements(db):
    with pytest.raises(LaminaeError):
        db.sql("DROP SOURCE orders; ALTER SOURCE")
    assert db.version("orders") == 1


def test_a_drop_names_its_dependents_and_cascade_takes_them_along(db):
    db.sql(
        """CREATE MATERIALIZED VIEW v AS SELECT note, sum(amount) AS total FROM orders GROUP BY note;
        CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v;
        CREATE SINK k FROM w WITH (connector = 'console')"""
    )
    with pytest.raises(DependentsExist, match="materialized view v, materialized view w, sink k"):
        db.sql("DROP SOURCE orders")
    with pytest.raises(DependentsExist, match="materialized view v"):
        db.sql("ALTER SOURCE orders DROP COLUMN amount FORCE")
    db.sql("ALTER SOURCE orders RENAME COLUMN amount TO cents")
    db.sql("DROP SOURCE orders CASCADE")
    for show in ("SHOW SOURCES", "SHOW VIEWS", "SHOW SINKS"):
        assert db.sql(show).fetchall() == []


def test_a_view_can_be_replaced_and_only_a_failed_one_resumed(db):
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders EMIT CHANGES")
    with pytest.raises(DuplicateObject):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders")
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT note FROM orders")
    assert db.sql("ALTER MATERIALIZED VIEW v RESUME").fetchone()[0] == "unchanged"
    assert [(row[0], row[1], row[3]) for row in db.sql("SHOW VIEWS").fetchall()] == [
        ("v", "creating", "SELECT note FROM orders")
    ]
    db.sql("ALTER SOURCE orders DROP COLUMN amount")


def test_a_view_never_reads_itself(db):
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders; CREATE MATERIALIZED VIEW w AS SELECT id FROM v")
    for query in ("SELECT id FROM v", "SELECT id FROM w"):
        with pytest.raises(QueryFailed, match="would read itself"):
            db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")


def test_what_lies_inside_a_list_is_named_in_the_error(db):
    db.sql("CREATE SOURCE n (l ARRAY<INT>, m STRUCT<a: INT>)")
    with pytest.raises(UnknownColumn, match=r"addressed as l\.element"):
        db.sql("ALTER SOURCE n ADD COLUMN l.w INT")
    with pytest.raises(UnknownColumn, match="only fields of a struct"):
        db.sql("ALTER SOURCE n DROP COLUMN l.element")
    with pytest.raises(InvalidSchema, match=r"the last column of m"):
        db.sql("ALTER SOURCE n DROP COLUMN m.a")


def test_an_error_midway_says_what_was_carried_out(db):
    with pytest.raises(UnknownColumn) as refused:
        db.sql("ALTER SOURCE orders ADD COLUMN c INT; ALTER SOURCE orders DROP COLUMN nope; SHOW SOURCES")
    assert refused.value.__notes__ == ["statement 2 of 3; the 1 before it were executed"]
    assert db.version("orders") == 2


def test_a_drop_is_refused_when_somebody_began_to_read_in_between(db):
    plan = db._engine.plan(*parse("DROP SOURCE orders"))
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders")
    with pytest.raises(ConcurrentChange):
        db._engine.execute(plan)


@pytest.mark.parametrize("home", ["", "  ", "a\0b"])
def test_a_home_without_a_name_is_refused(home):
    with pytest.raises(HomeUnwritable):
        lm.connect(home)


def test_double_quotes_are_a_text_and_backticks_a_name(db):
    found = db.sql("""SELECT "name" AS a, `name` AS b FROM laminar_catalog.sources""").fetchall()
    assert found == [("name", "orders")]
    db.sql("""CREATE MATERIALIZED VIEW v AS SELECT "id" AS a, `id` AS b FROM orders""")
    assert db._catalog.view("v").reads == (("orders", (1,)),)


def test_a_common_table_expression_may_have_the_name_of_what_it_reads(db):
    query = "WITH sources AS (SELECT name FROM laminar_catalog.sources) SELECT upper(name) FROM sources"
    assert db.sql(query).fetchall() == [("ORDERS",)]
    db.sql("CREATE MATERIALIZED VIEW v AS WITH orders AS (SELECT id FROM orders) SELECT id FROM orders")
    assert db._catalog.view("v").reads == (("orders", (1,)),)


def test_values_is_a_query_too(db):
    assert db.sql("VALUES (1, 'a'), (2, 'b')").fetchall() == [(1, "a"), (2, "b")]


def test_names_are_one_space_for_sources_views_and_sinks(db):
    with pytest.raises(DuplicateObject):
        db.sql("CREATE MATERIALIZED VIEW orders AS SELECT 1 AS one FROM orders")


def test_explain_is_the_plan_and_runs_nothing(db):
    steps = {row[0] for row in db.sql("EXPLAIN ALTER SOURCE orders DROP COLUMN note").fetchall()}
    assert {"statement", "change", "verdict", "outcome"} <= steps
    refused = db.sql("EXPLAIN ALTER SOURCE orders ALTER COLUMN amount TYPE TINYINT").fetchall()
    assert [row[2] for row in refused if row[0] == "outcome"] == ["is refused"]
    for text in ("CREATE SOURCE x (a INT)", "DROP SOURCE orders", "SET late_retention = '1 day'", "SHOW SOURCES",
                 "SELECT * FROM laminar_catalog.sources", "DESCRIBE SOURCE orders"):  # fmt: skip
        assert len(db.sql(f"EXPLAIN {text}"))
    assert db.version("orders") == 1
    assert len(db.sql("SHOW SOURCES")) == 1


def test_describe_shows_columns_policy_and_the_last_verdict(db):
    with pytest.raises(EvolutionRejected):
        db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE TINYINT")
    rows = {row[0]: row[4] for row in db.sql("DESCRIBE SOURCE orders").fetchall()}
    assert rows["id"] == "id 1"
    assert rows["# primary key"] == "id"
    assert rows["# version"] == "1"
    assert rows["# compatibility"] == "NONE (seed rules)"
    assert "on_error = dead_letter" in rows["# policy"]
    assert '"verdict": "incompatible"' in rows["# last verdict"]


def test_settings_are_kept(db, tmp_path):
    db.sql("SET state.schema-evolution.enable = true")
    with lm.connect(str(tmp_path / "home")) as again:
        rows = dict(again.sql("SELECT name, value FROM laminar_catalog.settings").fetchall())
    assert rows["state.schema-evolution.enable"] == "true"
    assert rows["changelog_retention"] == "7 days"


def test_a_reference_to_a_secret_is_stored_as_the_reference(db):
    db.sql("CREATE SOURCE d (x INT) WITH (connector = 'kafka', topic = 't', kafka.ssl.password = '${env:KAFKA_PW}')")
    assert ("kafka.ssl.password", "${env:KAFKA_PW}") in db._catalog.source("d").options


def test_everything_is_there_again_after_a_restart(db, tmp_path):
    db.sql("ALTER SOURCE orders ADD COLUMN ü STRING DEFAULT 'é'; ALTER SOURCE orders RENAME COLUMN note TO `two words`")
    history, current = db.history("orders"), db.schema("orders")
    db.close()
    with lm.connect(str(tmp_path / "home")) as again:
        assert again.history("orders") == history
        assert again.schema("orders").equals(current, check_metadata=True)


def test_catalog_relations_join_and_aggregate_in_sparks_dialect(db):
    rows = db.sql(
        "WITH h AS (SELECT source_name, count(*) AS n FROM laminar_catalog.schema_history GROUP BY source_name) "
        "SELECT s.name, h.n, s.created_at IS NOT NULL FROM laminar_catalog.sources s JOIN h ON h.source_name = s.name "
        'WHERE s.name = "orders"'
    ).fetchall()
    assert rows == [("orders", 3, True)]


def test_a_query_sees_no_files(db, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("x\n1\n")
    with pytest.raises(LaminaeError):
        db.sql(f"SELECT * FROM read_csv('{secret}')")  # noqa: S608  # the injection is the point
    with pytest.raises(LaminaeError):
        db.sql(f"SELECT * FROM '{secret}'")  # noqa: S608  # the injection is the point


def test_results_offer_tuples_arrow_and_pandas(db, capsys):
    result = db.sql("SHOW SOURCES")
    assert result.arrow().num_rows == len(result) == 1
    assert list(result.df()["name"]) == ["orders"]
    assert next(iter(result))[0] == "orders"
    result.show()
    assert "orders" in capsys.readouterr().out
    with pytest.raises(NotAvailable):
        result.spark()


def test_many_columns_and_deep_types_go_through_sql(db):
    wide = ", ".join(f"c{i} INT" for i in range(10_000))
    deep = "STRUCT<a: " * 50 + "INT" + ">" * 50
    db.sql(f"CREATE SOURCE wide ({wide}, deep {deep})")
    db.sql("ALTER SOURCE wide ADD COLUMN one_more STRING")
    assert len(db.schema("wide")) == 10_002
