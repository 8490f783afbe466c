"""Queries that are nested too deeply for Python to walk through."""

from __future__ import annotations

import pytest

from laminae.errors import QueryFailed
from laminae.views.dependencies import parse_query
from laminae.views.functions import refuse_functions
from laminae.views.planner import plan_view
from laminae.views.unsupported import refuse_unsupported

RELATIONS = {"s": ("a", "b")}


@pytest.mark.parametrize(
    "expression",
    ["- " * 900 + "a", "count(" + "- " * 240 + "a)", " || ".join("a" * 900), "(" * 500 + "a" + ")" * 500],
    ids=("signs", "aggregate", "chain", "parentheses"),
)
def test_a_query_that_is_nested_too_deeply_is_refused_by_name(expression):
    query = f"SELECT {expression} AS q FROM s"  # noqa: S608  # fixed above
    with pytest.raises(QueryFailed):
        plan_view(query, RELATIONS)


@pytest.mark.parametrize("refuse", [refuse_unsupported, lambda tree: refuse_functions(tree, ())])
def test_functions_in_a_query_that_is_nested_too_deeply_are_refused_by_name(refuse):
    tree = parse_query(f"SELECT count({'- ' * 300}a) AS n FROM s")  # noqa: S608  # fixed above
    with pytest.raises(QueryFailed, match="nested too deeply"):
        refuse(tree)
