"""Quoting, comments, separators and the extent of a query inside a longer text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laminae.errors import DdlSyntaxError
from laminae.sql import CreateSource, CreateView, DropColumn, EmitChanges, Query, RefreshSchema, RenameColumn, parse

COMMON_COLUMN_NAMES = (
    "add after alter array as cascade change changes close column comment compatibility confirm create date default "
    "desc describe drop emit every exists explain false final first for force from if interval key map materialized "
    "minus none not null on option or primary query refresh reject rename replace restrict resume schema select set "
    "show sink source sources struct table time timestamp timestamp_ntz to true type update value values view views "
    "watermark window with"
)


@pytest.mark.parametrize("name", COMMON_COLUMN_NAMES.split())
def test_any_word_names_a_column_without_quotes(name: str) -> None:
    (source,) = parse(f"CREATE SOURCE s (a INT, {name} STRING, b STRUCT<{name}: INT, c INT>)")
    assert isinstance(source, CreateSource)
    assert source.columns[1].name == name
    assert source.columns[2].type == pa.struct({name: pa.int32(), "c": pa.int32()})
    assert parse(f"ALTER SOURCE s RENAME COLUMN {name}.{name} TO {name}") == (RenameColumn("s", (name, name), name),)
    assert parse(f"ALTER SOURCE s DROP COLUMN {name} FORCE") == (DropColumn("s", (name,), False, False, True),)
    assert parse(f"ALTER SOURCE {name} REFRESH SCHEMA") == (RefreshSchema(name),)


@pytest.mark.parametrize("name", ["if", "watermark", "primary"])
def test_a_name_that_also_starts_a_clause_is_told_by_the_word_after_it(name: str) -> None:
    (source,) = parse(f"CREATE SOURCE IF NOT EXISTS {name} ({name} INT, WATERMARK FOR t AS t, PRIMARY KEY ({name}))")
    assert isinstance(source, CreateSource)
    assert (source.name, source.primary_key, source.if_not_exists) == (name, (name,), True)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("`a b`", "a b"),
        ('"a b"', "a b"),
        ("`a``b`", "a`b"),
        ('"a""b"', 'a"b'),
        ('`say "x"`', 'say "x"'),
        ("`it's; -- /*`", "it's; -- /*"),
        ("größe", "größe"),
        ("_x1", "_x1"),
        (r"`back\slash`", r"back\slash"),
    ],
)
def test_names_are_read_bare_or_quoted(written: str, name: str) -> None:
    assert parse(f"ALTER SOURCE s DROP COLUMN {written}.x") == (DropColumn("s", (name, "x"), False, False, False),)


def test_comments_and_empty_statements_are_skipped() -> None:
    text = "-- first; not a statement\n;;ALTER /* here ; */ SOURCE s -- there\nREFRESH SCHEMA; /**/ ; SELECT 1;"
    assert parse(text) == (RefreshSchema("s"), Query("SELECT 1"))


@pytest.mark.parametrize("text", ["", " \n", ";", "-- nothing", "/* nothing */;;"])
def test_a_text_without_statements_gives_none(text: str) -> None:
    assert parse(text) == ()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ';' FROM t",
        "SELECT ';''; EMIT CHANGES' FROM t",
        r"SELECT 'it\'s; ' FROM t",
        r"SELECT r'C:\' FROM t",
        'SELECT "a;b" FROM `x;y`',
        "SELECT 1 /* ; ' */ + 2 -- ; '\n + 3",
        "SELECT a - -b / c FROM t",
        "(SELECT ')' , (1))",
        "SELECT 'EMIT CHANGES', (emit) FROM t GROUP BY emit",
    ],
)
def test_a_query_ends_at_the_first_separator_outside_quotes_and_comments(query: str) -> None:
    assert parse(f"{query} -- trailing\n ; SHOW SOURCES")[0] == Query(query)
    (view,) = parse(f"CREATE MATERIALIZED VIEW v AS {query} /* between */ EMIT CHANGES -- trailing")
    assert view == CreateView("v", query, (), EmitChanges(), False, False)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT emit FROM t",
        "SELECT t.emit changes FROM t",
        "SELECT x FROM t emit",
        "SELECT x FROM t WHERE emit IS NULL",
        "SELECT x FROM t ORDER BY emit DESC",
        "SELECT x FROM (SELECT emit changes FROM t)",
        "SELECT x FROM a JOIN b emit ON emit.x = a.x",
        "SELECT x FROM t GROUP BY emit, x",
    ],
)
def test_a_column_or_table_called_emit_is_part_of_the_query(query: str) -> None:
    assert parse(f"CREATE MATERIALIZED VIEW v AS {query}") == (CreateView("v", query, (), None, False, False),)


@pytest.mark.parametrize(("query", "column"), [("SELECT (1; SHOW SINKS", 8), ("SELECT (1, ')'", 8), ("SELECT 1)", 9)])
def test_parentheses_of_a_query_must_match(query: str, column: int) -> None:
    with pytest.raises(DdlSyntaxError) as error:
        parse(query)
    assert error.value.params["column"] == column
