"""Expressions of operators in the words of the query, and the names they mention."""

from __future__ import annotations

import pytest

from laminae.views.expression_text import mentioned, relation_below, worded, words_of
from laminae.views.operators import Linear, Read
from laminae.views.planner import plan_view


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("10 DIV qty", {"qty"}),
        ("upper(`A b`) || c.d.e", {"a b", "c"}),
        ("m['k'].v + element_at(l, 1).v", {"m", "l"}),
        ("transform(l, x -> x.v + w)", {"l", "x", "w"}),
        ("1 + 1", set()),
    ],
)
def test_names_that_may_be_columns_are_mentioned(expression, names):
    assert mentioned([expression]) == names


def test_keys_and_results_are_said_as_they_were_written():
    query = (
        "SELECT upper(k) AS u, 10 DIV SUM(v + 1) AS r, COUNT(DISTINCT v) AS d, COUNT(*) AS n FROM t GROUP BY upper(k)"
    )
    root = plan_view(query, {"t": ["k", "v"]}).root
    assert isinstance(root, Linear)
    words = words_of(root.input)
    assert sorted(words.values()) == ["COUNT(*)", "COUNT(DISTINCT v)", "SUM(v + 1)", "UPPER(k)"]
    said = {each.name: worded(each.sql, words) for each in root.expressions}
    assert said == {"u": "UPPER(k)", "r": "10 DIV SUM(v + 1)", "d": "COUNT(DISTINCT v)", "n": "COUNT(*)"}
    assert relation_below(root.input) is None


def test_columns_that_came_later_are_said_by_their_own_names():
    read = Read("t", ("k", "#7"), ("`k`", "`late`"))
    assert words_of(read) == {"k": "k", "#7": "late"}
    assert relation_below(Linear(read, ())) == "t"
