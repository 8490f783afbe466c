"""The text of a view, to a tree and back; what the planner does not act on; what a view of an older home means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from laminae.engine.catalog_query.duckdb_dialect import translatable
from laminae.errors import FunctionNotAllowed, LaminaeError, UnsupportedSql
from laminae.views.dependencies import parse_query
from laminae.views.functions import refuse_functions
from laminae.views.operators import Linear
from laminae.views.planner import plan_view
from laminae.views.sql.sql_text import parse_expression, parse_text, refuse_changed, sql_of
from laminae.views.sql.supported_nodes import CLAUSES, not_understood

RELATIONS = {"s": ["a", "b", "ts"]}


@pytest.mark.parametrize(
    "text",
    [
        *("'it''s'", '"d""q"', "0x1F", "1L + 2S * 3Y", "1.5BD", "a NOT LIKE b", "a DIV b", "a::decimal(10, 2)", "r'x'"),
        *("a NOT IN (1, 2)", "a IS NOT NULL", "- -a", "a >> 2 >>> 3", "INTERVAL 1 DAY 2 HOURS", "DATE '2024-01-01'"),
        *("TRIM(BOTH 'x' FROM a)", "EXTRACT(YEAR FROM ts)", "CASE a WHEN 1 THEN b END", "TRANSFORM(a, x -> x.y + b)"),
    ],
)
def test_an_expression_is_printed_as_it_was_written(text):
    assert sql_of(parse_expression(text)) == text
    query = f"SELECT {text.replace('0x1F', 'a')} AS x FROM s"  # noqa: S608  # of the table above
    root = plan_view(query, RELATIONS).root
    assert isinstance(root, Linear)
    assert root.expressions[0].sql == text.replace("0x1F", "a")


@pytest.mark.parametrize("kind", CLAUSES, ids=lambda kind: kind.__name__)
def test_every_part_of_a_node_is_acted_on_or_refused(kind):
    for name in kind.arg_types.keys() - CLAUSES[kind]:
        assert not_understood(kind(**{name: exp.Var(this="x")})) is not None, name


NOT_IN_VIEWS = {
    "SELECT DISTINCT ON (a) b FROM s": "DISTINCT ON",
    "SELECT a FROM s OFFSET 2": "OFFSET",
    "SELECT a FROM s FETCH FIRST 3 ROWS ONLY": "FETCH FIRST",
    "SELECT a FROM s VERSION AS OF 3": "VERSION AS OF",
    "SELECT a FROM s TIMESTAMP AS OF '2024-01-01'": "TIMESTAMP AS OF",
    "SELECT a FROM s FOR UPDATE": "FOR UPDATE",
    "SELECT a FROM s TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "SELECT /*+ BROADCAST(s) */ a FROM s": "/\\*\\+",
    "SELECT a FROM s PIVOT (sum(a) FOR b IN (1, 2))": "PIVOT",
    "SELECT a FROM s UNPIVOT (x FOR y IN (a, b))": "PIVOT",
    "SELECT a FROM s CLUSTER BY a": "CLUSTER BY",
    "SELECT a FROM s GROUP BY DISTINCT a": "GROUP BY DISTINCT",
    "SELECT a FROM s UNION BY NAME SELECT b FROM s": "UNION BY NAME",
    "WITH RECURSIVE r AS (SELECT a FROM s) SELECT a FROM r": "RECURSIVE",
    "SELECT a FROM s WINDOW w AS (PARTITION BY a)": "OVER",
    "SELECT a FROM s |> WHERE a > 1": "[|]>",
    "FROM s SELECT a": "FROM",
}


@pytest.mark.parametrize(("query", "name"), NOT_IN_VIEWS.items())
def test_a_clause_that_a_view_would_leave_out_is_refused_by_name(query, name):
    with pytest.raises(UnsupportedSql, match=name):
        plan_view(query, RELATIONS)


WORDS = (
    "a b s , . ( ) * 1 'x' SELECT FROM WHERE GROUP BY HAVING UNION ALL DISTINCT ON AS OF LIMIT OFFSET FETCH FIRST ROWS"
)
WORDS += (
    " ONLY VERSION TIMESTAMP FOR UPDATE SHARE TABLESAMPLE PERCENT ORDER SORT CLUSTER WINDOW w OVER PIVOT IN WITH TIES"
)
WORDS += (
    " LATERAL VIEW explode count sum FILTER NOT NULL IS AND OR = + - QUALIFY INTO TOP FINAL STREAM ROLLUP NATURAL JOIN"
)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=8), st.lists(st.sampled_from(WORDS.split()), max_size=8))
def test_what_a_view_is_planned_of_is_the_whole_text(middle, end):
    text = " ".join(["SELECT a", *middle, "FROM s", *end])
    try:
        plan_view(text, RELATIONS)
    except LaminaeError:
        return
    tree = parse_text(text)
    refuse_changed(text, tree)
    assert all(not_understood(node) is None for node in tree.walk())


def test_a_function_is_allowed_by_name():
    for call in ("reflect('a', 'b')", "`reflect`('a', 'b')", "java_method('a', 'b')", "my_own(a)", "input_file_name()"):
        query = parse_query(f"SELECT {call} FROM s")  # noqa: S608  # of the line above
        with pytest.raises(FunctionNotAllowed):
            refuse_functions(query, ())
    refuse_functions(
        parse_query("SELECT my_own(a), nvl(a, b), CAST(a AS INT), TUMBLE(ts, '1 hour') FROM s"), {"my_own"}
    )


def test_a_view_keeps_the_reading_that_it_was_created_with():
    def condition(reading):
        root = plan_view("SELECT a FROM s WHERE nvl(b, 'it''s') = 'x'", RELATIONS, reading=reading).root
        assert isinstance(root, Linear)
        return root.condition

    assert condition(1) == "COALESCE(b, CONCAT('it', 's')) = 'x'"
    assert condition(2) == "NVL(b, 'it''s') = 'x'"


@pytest.mark.parametrize(
    ("query", "is_translatable"),
    [
        (
            "SELECT name, count(*) FROM laminar_catalog.sources WHERE name LIKE 'a%' GROUP BY name ORDER BY 1 LIMIT 3",
            True,
        ),
        ("SELECT s.name FROM laminar_catalog.sources s LEFT JOIN laminar_catalog.sinks t ON s.name = t.name", True),
        ("SELECT name FROM laminar_catalog.sources WHERE name = 'it''s'", False),
        ("SELECT name FROM laminar_catalog.sources WHERE name = 'a\\'", False),
        ("SELECT 7 / 2", False),
        ("SELECT sum(rows) FROM laminar_catalog.epochs", False),
        ("SELECT name FROM laminar_catalog.sources TABLESAMPLE (10 PERCENT)", False),
        ("SELECT * FROM laminar_catalog.sources PIVOT (count(*) FOR name IN ('a'))", False),
        ("SELECT reflect('java.lang.System', 'getenv')", False),
    ],
)
def test_duckdb_answers_only_what_means_the_same(query, is_translatable):
    assert (translatable(query) is not None) is is_translatable
