"""What the keys, windows and lambda variables of a grouped SELECT mean, and the ids that its state is known by."""

from __future__ import annotations

import pytest

from laminae.catalog.model import EXACT_READING
from laminae.errors import QueryFailed
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import GroupBy
from laminae.views.planner import plan_view

RELATIONS = {"s": ("a", "b", "k0", "o0", "x", "ts", "st", "arr")}
IDS = {
    "SELECT DISTINCT * FROM s": (("2403ef9a8760d501",), []),
    "SELECT DISTINCT * EXCEPT (id) FROM s": (("b19abea0f9571c1b",), []),
    "SELECT DISTINCT t.* EXCEPT (t.region) FROM s AS t": (("e0a74e231a9bcda2",), []),
    "SELECT region AS r, SUM(amount) / 2 AS half FROM s WHERE id > 0 GROUP BY region HAVING COUNT(*) > 1": (
        ("274ef9f94bdabd27",),
        ["a_156707f2803b", ""],
    ),
    "SELECT SUM(amount), AVG(Amount), COUNT(amount) FROM s": (
        ("2d42d8a1a6a07084",),
        ["a_156707f2803b", "a_156707f2803b", "a_156707f2803b"],
    ),
    "SELECT SUM(amount) FILTER (WHERE id = 2) AS a, COUNT(*) FILTER (WHERE id > 2) AS b FROM s": (
        ("2d42d8a1a6a07084",),
        ["a_95df678ed4b9", "a_d81b1a8fcc33"],
    ),
    "SELECT window(ts, '10 minutes').start AS since, region, "
    "count(distinct id) AS n FROM s GROUP BY window(ts, '10 minutes'), region": (
        ("7fe9ff517a762397",),
        ["a_625b83feca0c"],
    ),
    "SELECT window.start AS a, window.end AS b, count(*) AS n FROM s GROUP BY window(ts, '1 minute')": (
        ("d9970e528eeba585",),
        [""],
    ),
    "SELECT since, count(*) AS n FROM (SELECT window(ts, '1 minute').start AS since, region FROM s) GROUP BY since": (
        ("c2682451e1981adc",),
        [""],
    ),
    "SELECT region, sum(n) AS m FROM (SELECT region, id, count(*) AS n FROM s GROUP BY region, id) GROUP BY region": (
        ("e57a82a524876bfc", "a25bf71f82ae659a"),
        ["a_95fcf83db9b6", ""],
    ),
    "SELECT k0, count(*) AS n FROM (SELECT region AS k0, id FROM s) GROUP BY k0": (("337ce44f6a826828",), [""]),
    "SELECT region FROM s UNION SELECT region FROM v": (("65aaa51710ff4ec5",), []),
    "SELECT id % 10 AS b, max(transform(tags, t -> t + 1)) AS m, min(ts) AS f FROM s GROUP BY id % 10": (
        ("d05704b517c4927c",),
        ["a_1c5e656207f6", "a_648301686306"],
    ),
    "SELECT x + 1 AS y, count(*) AS n, transform(array(x + 1), e -> e + 1) AS t FROM s GROUP BY x + 1": (
        ("50298b9ec535a1c7",),
        [""],
    ),
    "WITH c AS (SELECT region, amount FROM s WHERE amount > 0) "
    "SELECT region, sum(amount) AS t, count(1) AS n FROM c GROUP BY ALL": (
        ("d565168328404221",),
        ["a_156707f2803b", ""],
    ),
}


@pytest.fixture(params=(1, EXACT_READING), ids=("by sqlglot", "as Spark"))
def planned(request):
    return lambda query, relations=RELATIONS: plan_view(query, relations, None, request.param)


def texts(plan):
    return {each.name: each.sql.casefold() for each in plan.root.expressions}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT transform(array(1, 2), x -> x + 1) AS t FROM s GROUP BY x + 1", "transform(array(1, 2), x -> x + 1)"),
        ("SELECT transform(array(1, 2), x -> x) AS t FROM s GROUP BY x", "transform(array(1, 2), x -> x)"),
        ("SELECT transform(arr, y -> y + x) AS t FROM s GROUP BY arr, x", "transform(k0, y -> y + k1)"),
        ("SELECT transform(arr, y -> y + sum(x)) AS t FROM s GROUP BY arr", "transform(k0, y -> y + o0)"),
        ("SELECT transform(arr, y -> x + 1 + y) AS t FROM s GROUP BY arr, x + 1", "transform(k0, y -> k1 + y)"),
        ("SELECT aggregate(arr, 0, (x, y) -> x + y) AS t FROM s GROUP BY arr, x", "aggregate(k0, 0, (x, y) -> x + y)"),
    ],
)
def test_a_key_is_not_replaced_where_a_variable_of_a_lambda_is_meant(query, expected):
    assert texts(plan_view(query, RELATIONS))["t"] == expected


@pytest.mark.parametrize(
    "query",
    [
        # The columns that hold keys and results would be taken for the variables.
        "SELECT transform(arr, k1 -> k1 + x) AS t FROM s GROUP BY arr, x",
        "SELECT transform(arr, o0 -> o0 + sum(x)) AS t FROM s GROUP BY arr",
        # So would a column whose qualifier is taken off.
        "SELECT transform(arr, x -> x + s.x) AS t FROM s",
        "SELECT transform(arr, x -> x + S.X.y) AS t FROM s",
        # An aggregate is computed before the lambda is.
        "SELECT transform(arr, x -> sum(x)) AS t FROM s GROUP BY arr",
        # Neither a key nor a variable.
        "SELECT transform(array(1), x -> st.x) AS t FROM s GROUP BY a",
    ],
)
def test_a_column_and_a_variable_of_one_name_are_never_mistaken(planned, query):
    with pytest.raises(QueryFailed):
        planned(query)


@pytest.mark.parametrize(
    ("item", "by", "expected"),
    [
        ("st.b", "st", "k0.b"),
        ("st.b", "st, b", "k0.b"),
        ("st.b.x", "st.b, x", "k0.x"),
        ("s.st.b.x", "a, st", "k1.b.x"),
        ("struct(b AS a)", "a, b", "struct(k1 as a)"),
        ("struct(b, a + 1, s.st.b)", "a + 1, b, st.b", "struct(k1 as `b`, k0 as `col2`, k2 as `b`)"),
        ("to_json(struct(a, sum(x), 1, a + 1))", "a", "to_json(struct(k0 as `a`, o0 as `col2`, 1, k0 + 1))"),
        ("named_struct('a', b).a", "a, b", "named_struct('a', k1).a"),
    ],
)
def test_a_field_or_an_alias_with_the_name_of_a_key_stays_as_it_is(item, by, expected):
    plan = plan_view(f"SELECT {item} AS q, count(*) AS n FROM s GROUP BY {by}", RELATIONS)  # noqa: S608  # fixed above
    assert texts(plan)["q"] == expected


@pytest.mark.parametrize(
    ("item", "by"),
    [
        ("window(ts, '5 minutes').start", "window(ts, '1 minute')"),
        ("window(ts, '5 minutes', '1 minute').end", "window(ts, '5 minutes')"),
        ("window(x, '1 minute').start", "window(ts, '1 minute')"),
        ("tumble_start(ts, INTERVAL '5' MINUTE)", "tumble(ts, INTERVAL '1' MINUTE)"),
        ("window(ts, '1 month').start", "window(ts, '30 days')"),
    ],
)
def test_another_window_is_not_answered_with_that_of_the_key(planned, item, by):
    with pytest.raises(QueryFailed, match="is not the window in GROUP BY"):
        planned(f"SELECT {item} AS w, count(*) AS n FROM s GROUP BY {by}")  # noqa: S608  # fixed above


@pytest.mark.parametrize(
    ("item", "by"),
    [
        ("window.start", "window(ts, '1 minute')"),
        ("WINDOW(TS, '1 minute').START", "window(ts, '1 minute')"),
        ("window(ts, '60 seconds').start", "window(ts, '1 minute')"),
        ("tumble_start(ts, INTERVAL '10' MINUTE)", "window(ts, '10 minutes')"),
        ("hop_start(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)", "window(ts, '60 minutes', '5 minutes')"),
        ("window(ts, '1 hour 30 minutes').start", "window(ts, '90 minutes')"),
    ],
)
def test_a_window_is_the_key_however_its_length_is_written(planned, item, by):
    plan = planned(f"SELECT {item} AS w, count(*) AS n FROM s GROUP BY {by}")  # noqa: S608  # fixed above
    assert texts(plan)["w"] == "k0_start"


@pytest.mark.parametrize("item", ["k0", "o0", "k0 + 1", "s.k0", "`k0`", "upper(o0)"])
def test_a_source_column_with_the_name_of_an_inner_one_must_be_grouped_by(planned, item):
    with pytest.raises(QueryFailed, match="neither in GROUP BY nor inside an aggregate"):
        planned(f"SELECT {item} AS q, a, count(*) AS n FROM s GROUP BY a")  # noqa: S608  # fixed above


def test_source_columns_with_the_names_of_inner_ones_are_keys_and_arguments(planned):
    plan = planned("SELECT a, k0 AS q, sum(o0) AS n FROM s GROUP BY a, k0 HAVING max(k0) > 1")
    assert texts(plan) == {"a": "k0", "q": "k1", "n": "o0"}
    assert plan.root.condition == "o1 > 1"
    before = {each.name: each.sql for each in plan.root.input.input.expressions}
    assert (before["k0"], before["k1"]) == ("a", "k0")


def test_state_is_known_by_the_ids_it_was_written_with(planned):
    """Written down before the planner was changed: with other ids a live view would begin again from nothing."""
    relations = {"s": ("id", "region", "amount", "ts", "meta", "tags", "x", "st"), "v": ("region", "total")}
    for query, expected in IDS.items():
        operators = stateful(planned(query, relations).root)
        arguments = [call.id for each in operators if isinstance(each, GroupBy) for call in each.calls]
        assert (tuple(map(operator_id, operators)), arguments) == expected, query
