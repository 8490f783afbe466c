"""By which ids the state of a view is found again: those of views of the first reading never change, and expressions
that differ in a case that Spark looks at have two.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from laminae.engine.views.resolution import added_parts, keeps_state
from laminae.errors import QueryFailed, StateIncompatible
from laminae.views.identity import operator_id, refuse_state_of_another, stateful
from laminae.views.operators import GroupBy
from laminae.views.planner import plan_view

SQLGLOT_READING = 1
# Written by the last version that had no other reading.
STORED = json.loads((Path(__file__).parents[2] / "fixtures/state_ids/sqlglot_reading.json").read_text())
RELATIONS = {"s": ["k", "a", "v", "m", "st", "Amount"]}


def ids(query, reading):
    found = []
    for operator in stateful(plan_view(query, STORED["relations"], None, reading).root):
        keys = list(operator.keys) if isinstance(operator, GroupBy) else []
        calls = operator.calls if isinstance(operator, GroupBy) else ()
        named = [[call.name, call.function.value, call.argument] for call in calls]
        found.append([operator_id(operator), keys, named])
    return found


def arguments(*aggregates):
    listed = ", ".join(f"{each} AS n{place}" for place, each in enumerate(aggregates))
    (group,) = stateful(plan_view(f"SELECT k, {listed} FROM s GROUP BY k", RELATIONS).root)  # noqa: S608  # of a test
    assert isinstance(group, GroupBy)
    return {call.argument for call in group.calls}


@pytest.mark.parametrize("view", STORED["views"], ids=lambda view: view["query"][:60])
def test_a_view_of_the_first_reading_finds_the_state_it_has_stored(view):
    assert ids(view["query"], SQLGLOT_READING) == view["operators"]


def test_there_are_many_views_to_compare():
    assert len(STORED["views"]) > 130


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("sum(v:A::int)", "sum(v:a::int)"),
        ("max(v:a['B'])", "max(v:a['b'])"),
        ("max(v:a.B)", "max(v:a.b)"),
        ("sum(m.A)", "sum(m.a)"),
        ("sum(m['A'])", "sum(m['a'])"),
        ("sum(st.f.G)", "sum(st.f.g)"),
        ("max(named_struct('Q', a).Q)", "max(named_struct('Q', a).q)"),
        ("max(struct(a AS Q))", "max(struct(a AS q))"),
        ("max(to_json(struct(A)))", "max(to_json(struct(a)))"),
        ("max(to_json(STRUCT(1, A)))", "max(to_json(STRUCT(1, a)))"),
        ("max((A, 1))", "max((a, 1))"),
        ("max(to_json(arrays_zip(A)))", "max(to_json(arrays_zip(a)))"),
        ("max(concat(a, 'X'))", "max(concat(a, 'x'))"),
        ("max(to_json(CAST(st AS STRUCT<F: INT>)))", "max(to_json(CAST(st AS STRUCT<f: INT>)))"),
    ],
)
def test_what_differs_in_a_case_that_matters_has_state_of_its_own(first, second):
    assert len(arguments(first, second)) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("sum(a)", "SUM(A)"),
        ("sum(a)", "sum(`A`)"),
        ("sum(a)", "sum(s.A)"),
        ("sum(st.f)", "sum(S.ST.f)"),
        ("max(upper(a))", "max(UPPER(A))"),
        ("sum(cast(a as int))", "sum(CAST(A AS INT))"),
        ("sum(a::int)", "sum(A::INT)"),
        ("max(a collate utf8_lcase)", "max(a COLLATE UTF8_LCASE)"),
        ("sum(case when a > 1 then a end)", "sum(CASE WHEN A > 1 THEN A END)"),
        ("max(concat(a, 'x'))", 'max(CONCAT(A, "x"))'),
        ("max(a + interval 1 day)", "max(A + INTERVAL 1 DAY)"),
    ],
)
def test_what_is_the_same_in_another_case_is_kept_once(first, second):
    assert len(arguments(first, second)) == 1


def test_a_path_in_another_case_is_not_the_key():
    with pytest.raises(QueryFailed, match="neither in GROUP BY"):
        plan_view("SELECT v:A AS p, count(*) AS n FROM s GROUP BY v:a", RELATIONS)
    assert plan_view("SELECT V:a AS p, count(*) AS n FROM s GROUP BY v:a", RELATIONS).key == ("p",)


def test_a_star_and_a_name_in_another_case_mean_one_column():
    plan = plan_view("SELECT *, count(*) AS n FROM s GROUP BY k, a, v, m, st, AMOUNT", RELATIONS)
    assert plan.columns == (*RELATIONS["s"], "n")


def test_state_of_an_operator_that_the_view_does_not_have_is_refused_by_name():
    root = plan_view("SELECT k, count(*) AS n FROM (SELECT DISTINCT k, a FROM s) GROUP BY k", RELATIONS).root
    outer, inner = (operator_id(each) for each in stateful(root))
    for stored in ([], [outer], [inner], [outer, inner]):
        refuse_state_of_another("totals", root, stored)
    for stored in (["0f0f"], ["0f0f", inner], ["0f0f", outer]):
        with pytest.raises(StateIncompatible, match=r"view totals .* operator 0f0f: .*CREATE OR REPLACE"):
            refuse_state_of_another("totals", root, stored)


@pytest.mark.parametrize(
    ("first", "second", "added"),
    [
        ("sum(m.A)", "sum(m.a)", 1),
        ("sum(st.f)", "sum(st.f)", 0),
        ("sum(A)", "sum(a)", 0),
        ("max(a + INTERVAL '1' DAY)", "max(A + INTERVAL '1' DAY)", 0),
    ],
)
def test_a_view_that_replaces_one_of_the_first_reading_takes_over_what_means_the_same(first, second, added):
    before, now = (f"SELECT k, {each} AS n, count(*) AS c FROM s GROUP BY k" for each in (first, second))  # noqa: S608
    old, new = plan_view(before, RELATIONS, None, SQLGLOT_READING), plan_view(now, RELATIONS)
    assert len({argument for argument, _ in added_parts(old, new)}) == added
    assert keeps_state(old, new)
