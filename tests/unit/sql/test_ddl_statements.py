"""Each statement form gives its value, and printing the value gives a text with the same meaning."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laminae.sql import (
    AddColumn,
    After,
    AlterColumnType,
    ColumnDef,
    ConfirmChange,
    CreateSink,
    CreateSource,
    CreateView,
    DescribeSource,
    Drop,
    DropBehaviour,
    DropColumn,
    DropDefault,
    DropNotNull,
    EmitChanges,
    EmitEvery,
    EmitFinal,
    EmitOnUpdate,
    EmitOnWatermark,
    EmitOnWindowClose,
    Explain,
    ExplainEpoch,
    First,
    Interval,
    Literal,
    MoveColumn,
    ObjectKind,
    Option,
    Query,
    RefreshSchema,
    RejectChange,
    RenameColumn,
    ResumeView,
    SetCompatibility,
    SetDefault,
    SetNotNull,
    SetOptions,
    SetSetting,
    Show,
    Statement,
    Watermark,
    parse,
    to_sql,
)

SECOND = 1_000_000
C = ("c",)


def added(**changes: object) -> AddColumn:
    plain: dict[str, object] = {
        "source": "s",
        "path": C,
        "type": pa.int32(),
        "nullable": True,
        "default": None,
        "position": None,
        "if_not_exists": False,
        "force": False,
    }
    return AddColumn(**(plain | changes))  # type: ignore[arg-type] # the fields are spelled at each use


def view(query: str = "SELECT 1", **changes: object) -> CreateView:
    plain: dict[str, object] = {"options": (), "emit": None, "or_replace": False, "if_not_exists": False}
    return CreateView("v", query, **(plain | changes))  # type: ignore[arg-type] # as above


FORMS: list[tuple[str, Statement]] = [
    (
        "CREATE SOURCE IF NOT EXISTS orders (id BIGINT NOT NULL, note STRING DEFAULT 'none', ts TIMESTAMP, "
        "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id)) "
        "WITH (connector = 'kafka', debezium.nulls = 'explicit', max-rows = 10, strict = TRUE)",
        CreateSource(
            "orders",
            (
                ColumnDef("id", pa.int64(), nullable=False),
                ColumnDef("note", pa.string(), default=Literal("none")),
                ColumnDef("ts", pa.timestamp("us", tz="UTC")),
            ),
            Watermark(("ts",), Interval(5 * SECOND)),
            ("id",),
            (
                Option("connector", "kafka"),
                Option("debezium.nulls", "explicit"),
                Option("max-rows", "10"),
                Option("strict", "true"),
            ),
            if_not_exists=True,
        ),
    ),
    ("CREATE SOURCE s", CreateSource("s", (), None, (), (), False)),
    (
        "CREATE SOURCE s WITH (schema.registry.url = 'http://r', offset = -1.5)",
        CreateSource("s", (), None, (), (Option("schema.registry.url", "http://r"), Option("offset", "-1.5")), False),
    ),
    (
        "CREATE SOURCE s (WATERMARK FOR meta.at AS meta.at)",
        CreateSource("s", (), Watermark(("meta", "at"), Interval(0)), (), (), False),
    ),
    (
        "CREATE SOURCE s (id INT PRIMARY KEY NOT NULL)",
        CreateSource("s", (ColumnDef("id", pa.int32(), nullable=False),), None, ("id",), (), False),
    ),
    ("ALTER SOURCE s ADD COLUMN c INT", added()),
    ("ALTER SOURCE s ADD COLUMN IF NOT EXISTS c INT NOT NULL", added(if_not_exists=True, nullable=False)),
    ("ALTER SOURCE s ADD COLUMN c INT NULL", added()),
    ("ALTER SOURCE s ADD COLUMN c INT DEFAULT 5 FIRST", added(default=Literal(5), position=First())),
    ("ALTER SOURCE s ADD COLUMN c INT DEFAULT NULL", added(default=Literal(None))),
    ("ALTER SOURCE s ADD COLUMN c INT AFTER d FORCE", added(position=After("d"), force=True)),
    ("ALTER SOURCE s ADD COLUMN c INT FORCE DEFAULT 5 NOT NULL", added(default=Literal(5), nullable=False, force=True)),
    ("ALTER SOURCE s ADD COLUMN meta.location STRING", added(path=("meta", "location"), type=pa.string())),
    ("ALTER SOURCE s DROP COLUMN c", DropColumn("s", C, False, False, False)),
    ("ALTER SOURCE s DROP COLUMN IF EXISTS c RESTRICT", DropColumn("s", C, True, True, False)),
    (
        "ALTER SOURCE s DROP COLUMN tags.element.name FORCE",
        DropColumn("s", ("tags", "element", "name"), False, False, True),
    ),
    ("ALTER SOURCE s ALTER COLUMN c TYPE BIGINT", AlterColumnType("s", C, pa.int64(), False)),
    ("ALTER SOURCE s ALTER COLUMN c TYPE BIGINT FORCE", AlterColumnType("s", C, pa.int64(), True)),
    ("ALTER SOURCE s ALTER COLUMN c SET NOT NULL", SetNotNull("s", C, False)),
    ("ALTER SOURCE s ALTER COLUMN c DROP NOT NULL", DropNotNull("s", C, False)),
    ("ALTER SOURCE s ALTER COLUMN c SET DEFAULT 'x' FORCE", SetDefault("s", C, Literal("x"), True)),
    ("ALTER SOURCE s ALTER COLUMN c DROP DEFAULT", DropDefault("s", C, False)),
    ("ALTER SOURCE s ALTER COLUMN c FIRST", MoveColumn("s", C, First(), False)),
    ("ALTER SOURCE s ALTER COLUMN c AFTER d", MoveColumn("s", C, After("d"), False)),
    ("ALTER SOURCE s RENAME COLUMN c TO d", RenameColumn("s", C, "d")),
    ("ALTER SOURCE s RENAME COLUMN c TO d FORCE", RenameColumn("s", C, "d", force=True)),
    ("ALTER SOURCE s REFRESH SCHEMA", RefreshSchema("s")),
    ("ALTER SOURCE s SET COMPATIBILITY = full", SetCompatibility("s", "FULL")),
    ("ALTER SOURCE s SET COMPATIBILITY = 'backward_transitive'", SetCompatibility("s", "BACKWARD_TRANSITIVE")),
    ("ALTER SOURCE s SET (a = '1', 'b' = '2')", SetOptions("s", (Option("a", "1"), Option("b", "2")))),
    ("ALTER SOURCE s CONFIRM CHANGE 7", ConfirmChange("s", 7)),
    ("ALTER SOURCE s REJECT CHANGE 8", RejectChange("s", 8)),
    ("SET state.schema-evolution.enable = true", SetSetting("state.schema-evolution.enable", "true")),
    ("SET mode = FULL", SetSetting("mode", "FULL")),
    ("SET retries = 3", SetSetting("retries", "3")),
    ("DESCRIBE SOURCE s", DescribeSource("s")),
    ("EXPLAIN EPOCH s", ExplainEpoch("s")),
    ("explain epoch epoch", ExplainEpoch("epoch")),
    ("DESC SOURCE s", DescribeSource("s")),
    ("SHOW SOURCES", Show(ObjectKind.SOURCE)),
    ("SHOW VIEWS", Show(ObjectKind.VIEW)),
    ("SHOW MATERIALIZED VIEWS", Show(ObjectKind.VIEW)),
    ("SHOW SINKS", Show(ObjectKind.SINK)),
    ("EXPLAIN ALTER SOURCE s REFRESH SCHEMA", Explain(RefreshSchema("s"))),
    ("EXPLAIN SELECT 1", Explain(Query("SELECT 1"))),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1", view()),
    ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1", view(or_replace=True)),
    ("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", view(if_not_exists=True)),
    (
        "CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '1 minute') AS SELECT 1 EMIT CHANGES",
        view(options=(Option("allowed_lateness", "1 minute"),), emit=EmitChanges()),
    ),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT ON UPDATE", view(emit=EmitOnUpdate())),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT ON WATERMARK", view(emit=EmitOnWatermark())),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT ON WINDOW CLOSE", view(emit=EmitOnWindowClose())),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT FINAL", view(emit=EmitFinal())),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT EVERY '10' SECONDS", view(emit=EmitEvery(Interval(10 * SECOND)))),
    (
        "CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT EVERY INTERVAL 2 MINUTES",
        view(emit=EmitEvery(Interval(120 * SECOND))),
    ),
    ("ALTER MATERIALIZED VIEW v RESUME", ResumeView("v")),
    ("CREATE SINK k FROM v", CreateSink("k", "v", (), False)),
    (
        "CREATE SINK IF NOT EXISTS k FROM v WITH (format = 'debezium-json')",
        CreateSink("k", "v", (Option("format", "debezium-json"),), True),
    ),
    ("DROP SOURCE s", Drop(ObjectKind.SOURCE, "s", False, None)),
    ("DROP MATERIALIZED VIEW IF EXISTS v CASCADE", Drop(ObjectKind.VIEW, "v", True, DropBehaviour.CASCADE)),
    ("DROP SINK k RESTRICT", Drop(ObjectKind.SINK, "k", False, DropBehaviour.RESTRICT)),
    ("WITH a AS (SELECT 1) SELECT * FROM a", Query("WITH a AS (SELECT 1) SELECT * FROM a")),
    ("VALUES (1), (2)", Query("VALUES (1), (2)")),
    ("FROM t SELECT a", Query("FROM t SELECT a")),
    ("TABLE t", Query("TABLE t")),
    ("(SELECT 1) UNION (SELECT 2)", Query("(SELECT 1) UNION (SELECT 2)")),
]


@pytest.mark.parametrize(("text", "statement"), FORMS, ids=[text[:60] for text, _ in FORMS])
def test_each_form_gives_its_statement(text: str, statement: Statement) -> None:
    assert parse(text) == (statement,)


@pytest.mark.parametrize("statement", [statement for _, statement in FORMS], ids=lambda row: type(row).__name__)
def test_a_printed_statement_reads_back_as_itself(statement: Statement) -> None:
    assert parse(to_sql(statement)) == (statement,)


def test_keywords_are_read_in_any_case() -> None:
    assert parse("alter Source s aDD column c int after d force") == (added(position=After("d"), force=True),)


def test_a_word_is_one_keyword_only_when_it_ends_there() -> None:
    assert parse("CREATE SOURCE sources (nullable INT)")[0] == CreateSource(
        "sources", (ColumnDef("nullable", pa.int32()),), None, (), (), False
    )


@pytest.mark.parametrize(
    ("statement", "printed"),
    [
        (added(default=Literal("it's"), position=First()), "ALTER SOURCE s ADD COLUMN c INT DEFAULT 'it''s' FIRST"),
        (RenameColumn("s", ("a b", "c"), "order"), "ALTER SOURCE s RENAME COLUMN `a b`.c TO `order`"),
        (
            view(emit=EmitEvery(Interval(90 * SECOND))),
            "CREATE MATERIALIZED VIEW v AS SELECT 1\nEMIT EVERY INTERVAL '90' SECOND",
        ),
        (SetOptions("s", (Option("a.b-c", "x"), Option("é", "y"))), "ALTER SOURCE s SET (a.b-c = 'x', `é` = 'y')"),
        (Drop(ObjectKind.VIEW, "v", True, DropBehaviour.CASCADE), "DROP MATERIALIZED VIEW IF EXISTS v CASCADE"),
    ],
)
def test_statements_print_as_a_person_would_write_them(statement: Statement, printed: str) -> None:
    assert to_sql(statement) == printed
