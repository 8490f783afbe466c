"""Which relations a query reads, whatever its words and common table expressions are called."""

from __future__ import annotations

import pytest

from laminae.views.dependencies import parse_query, relations_of

S = ("", "s")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT a, changes of FROM s", (S,)),
        ("SELECT a, changes of, b FROM s WHERE a > 1", (S,)),
        ("SELECT a, changes AS of FROM s GROUP BY a, changes", (S,)),
        ("SELECT changes of FROM changes of", (("", "changes"),)),
        ("SELECT * FROM changes of, s", (("", "changes"), S)),
        ("SELECT * FROM CHANGES OF s", (("changes", "s"),)),
        ("SELECT * FROM a, CHANGES OF `s` JOIN changes of t ON TRUE", (("", "a"), ("changes", "s"), ("changes", "t"))),
        ("SELECT (SELECT max(a) FROM changes of s), changes of FROM t", (("", "t"), ("changes", "s"))),
        ("SELECT extract(year FROM a), changes of FROM s", (S,)),
    ],
)
def test_changes_of_stands_only_where_a_relation_may(query, found):
    assert sorted((schema.casefold(), name) for schema, name in relations_of(parse_query(query))) == sorted(found)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("WITH s AS (SELECT * FROM s) SELECT * FROM s", (S,)),
        ("WITH t AS (SELECT * FROM s), s AS (SELECT * FROM t) SELECT * FROM s", (S,)),
        ("WITH s AS (SELECT 1 AS a), t AS (SELECT * FROM s) SELECT * FROM t", ()),
        ("SELECT * FROM (WITH t AS (SELECT 1 AS a) SELECT * FROM t) UNION ALL SELECT * FROM t", (("", "t"),)),
        ("WITH RECURSIVE s AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM s) SELECT * FROM s", ()),
        ("WITH t AS (SELECT * FROM s) SELECT (SELECT max(a) FROM t) FROM t", (S,)),
    ],
)
def test_a_common_table_expression_does_not_see_itself(query, found):
    assert relations_of(parse_query(query)) == found
