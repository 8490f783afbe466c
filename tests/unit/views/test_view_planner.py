"""From a SELECT to operators: where expressions are taken apart, what identifies a row, and what is refused."""

from __future__ import annotations

import pytest

from laminae.errors import QueryFailed, UnknownColumn, UnsupportedSql
from laminae.views.explain import drawn
from laminae.views.identity import operator_id, stateful
from laminae.views.kernels.group_by.aggregates import Function
from laminae.views.operators import Distinct, GroupBy, Linear, Read, UnionAll, quoted, reads_in
from laminae.views.planner import RelationColumn, plan_view

RELATIONS = {"s": ("id", "region", "amount", "ts", "meta", "tags"), "v": ("region", "total")}


def planned(query, keys=None):
    return plan_view(query, RELATIONS, keys)


def texts(operator):
    return {each.name: each.sql for each in operator.expressions}


def group_of(plan):
    assert isinstance(plan.root, Linear)
    assert isinstance(plan.root.input, GroupBy)
    return plan.root.input


def test_a_plain_select_is_one_projection():
    plan = planned("SELECT id, upper(region) AS r FROM s WHERE amount > 5")
    assert plan.root == Linear(Read("s", RELATIONS["s"]), plan.root.expressions, "amount > 5")
    assert texts(plan.root) == {"id": "id", "r": "UPPER(region)"}


def test_a_star_is_every_column_that_is_there_now():
    assert planned("SELECT * FROM s").columns == RELATIONS["s"]
    assert planned("SELECT * EXCEPT (ts, meta), id + 1 AS n FROM s").columns == ("id", "region", "amount", "tags", "n")


def test_keys_and_arguments_are_computed_before_and_the_rest_behind_the_groups():
    plan = planned(
        "SELECT region AS r, SUM(amount) / 2 AS half FROM s WHERE id > 0 GROUP BY region HAVING COUNT(*) > 1"
    )
    group = group_of(plan)
    assert [call.function for call in group.calls] == [Function.SUM, Function.COUNT_ROWS]
    assert texts(plan.root) == {"r": "k0", "half": "o0 / 2"}
    assert plan.root.condition == "o1 > 1"
    assert group.input.condition == "id > 0"
    assert set(texts(group.input).values()) == {"region", "amount"}


def test_aggregates_of_one_expression_share_its_column_and_its_name_lasts():
    first = group_of(planned("SELECT SUM(amount), AVG(Amount), COUNT(amount) FROM s"))
    second = group_of(planned("SELECT MAX(id), SUM(amount + 0), SUM(amount) FROM s"))
    (shared,) = {call.argument for call in first.calls}
    assert [call.argument for call in second.calls][2] == shared


def test_a_filter_becomes_a_case_around_the_argument():
    group = group_of(
        planned("SELECT SUM(amount) FILTER (WHERE id = 2) AS a, COUNT(*) FILTER (WHERE id > 2) AS b FROM s")
    )
    assert set(texts(group.input).values()) == {"CASE WHEN id = 2 THEN amount END", "CASE WHEN id > 2 THEN 1 END"}
    assert [call.function for call in group.calls] == [Function.SUM, Function.COUNT]


@pytest.mark.parametrize("by", ["region", "1", "r", "s.region", "REGION", "ALL"])
def test_a_key_is_named_by_expression_place_or_alias(by):
    plan = planned(f"SELECT s.region AS r, COUNT(*) AS n FROM s GROUP BY {by}")  # noqa: S608  # fixed above
    assert texts(plan.root) == {"r": "k0", "n": "o0"}
    assert plan.key == ("r",)


def test_without_its_keys_a_row_is_not_identified():
    assert planned("SELECT COUNT(*) AS n FROM s GROUP BY region").key is None
    assert planned("SELECT COUNT(*) AS n FROM s").key == ()


def test_a_key_of_the_source_goes_along_under_its_new_name():
    assert planned("SELECT id AS number, amount FROM s", {"s": ("id",)}).key == ("number",)
    assert planned("SELECT amount FROM s", {"s": ("id",)}).key is None


WINDOWS = [
    "window(ts, '10 minutes')",
    "TUMBLE(ts, INTERVAL '10' MINUTE)",
]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_is_kept_as_its_two_ends(window):
    plan = planned(f"SELECT {window}.start AS since, region, COUNT(*) AS n FROM s GROUP BY {window}, region")  # noqa: S608  # fixed above
    group = group_of(plan)
    assert group.keys == ("k0_start", "k0_end", "k1")
    assert texts(plan.root)["since"] == "k0_start"
    assert plan.key == ("since", "region")
    assert (plan.window.start, plan.window.end) == ("k0_start", "k0_end")


def test_window_start_and_end_are_known_by_name():
    plan = planned("SELECT window.start AS a, window.end AS b FROM s GROUP BY window(ts, '1 hour', '10 minutes')")
    assert texts(plan.root) == {"a": "k0_start", "b": "k0_end"}


def test_hop_is_a_window_that_slides():
    plan = planned(
        "SELECT HOP_END(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) AS until, COUNT(*) AS n FROM s "
        "GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)"
    )
    assert texts(group_of(plan).input)["k0_end"] == "WINDOW(ts, '10 minute', '5 minute').end"
    assert texts(plan.root)["until"] == "k0_end"


def test_union_all_keeps_every_row_and_union_each_once():
    plan = planned("SELECT id FROM s UNION ALL SELECT total FROM v UNION ALL SELECT amount FROM s")
    assert isinstance(plan.root, UnionAll)
    assert len(plan.root.inputs) == 3
    assert plan.columns == ("id",)
    once = planned("SELECT id FROM s UNION SELECT total FROM v")
    assert isinstance(once.root, Distinct)
    assert once.key == ("id",)


def test_sub_queries_in_from_and_common_table_expressions_are_planned_where_they_stand():
    plan = planned("WITH a (n, r) AS (SELECT id, region FROM s) SELECT COUNT(*) AS c FROM (SELECT DISTINCT r FROM a) q")
    assert isinstance(group_of(plan).input.input, Distinct)
    assert [read.relation for read in reads_in(plan.root)] == ["s"]


def test_nested_fields_and_lambdas_are_left_to_spark():
    plan = planned("SELECT t.meta.place.city, transform(tags, tag -> concat(tag, region)) AS x FROM s AS t")
    assert texts(plan.root) == {"city": "meta.place.city", "x": "TRANSFORM(tags, tag -> CONCAT(tag, region))"}


def test_the_tree_is_drawn_with_its_state():
    lines = list(drawn(planned("SELECT region, COUNT(*) AS n FROM s GROUP BY region").root))
    assert [name.strip() for name, _ in lines] == ["Linear", "GroupBy", "Linear", "Read"]
    assert lines[1][1] == "by k0: COUNT(*)() AS o0; state: one row for each group"


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT rand() AS r FROM s", "rand"),
        ("SELECT now() AS r FROM s", "now"),
        ("SELECT current_date AS r FROM s", "current_date"),
        ("SELECT uuid() AS r FROM s", "uuid"),
        ("SELECT stddev(amount) FROM s", "stddev"),
        ("SELECT collect_list(id) FROM s", "collect_list"),
        ("SELECT listagg(id) FROM s", "listagg"),
        ("SELECT explode(tags) FROM s", "explode"),
        ("SELECT id FROM s WHERE id IN (SELECT total FROM v)", "sub-query"),
        ("SELECT (SELECT max(total) FROM v) AS m FROM s", "sub-query"),
        ("SELECT s.id FROM s CROSS JOIN v", "CROSS JOIN"),
        ("SELECT sum(id) OVER (PARTITION BY region) FROM s", "OVER"),
        ("SELECT id FROM s ORDER BY id", "ORDER BY"),
        ("SELECT id FROM s LIMIT 3", "LIMIT"),
        ("SELECT region, count(*) FROM s GROUP BY ROLLUP(region)", "ROLLUP"),
        ("SELECT region, count(*) FROM s GROUP BY CUBE(region)", "CUBE"),
        ("SELECT id FROM s INTERSECT SELECT total FROM v", "INTERSECT"),
    ],
)
def test_what_a_view_cannot_hold_is_refused_by_name(query, construct):
    with pytest.raises(UnsupportedSql, match=construct):
        planned(query)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT region, amount FROM s GROUP BY region", "neither in GROUP BY nor inside an aggregate"),
        ("SELECT sum(count(*)) FROM s", "nested in an aggregate"),
        ("SELECT sum(DISTINCT id) FROM s", "DISTINCT is supported for COUNT only"),
        ("SELECT count(DISTINCT id, region) FROM s", "one expression"),
        ("SELECT id AS a, amount AS A FROM s", "two columns of the view"),
        ("SELECT id, region FROM s UNION ALL SELECT total FROM v", "UNION of 2 and 1 columns"),
        ("SELECT count(*) FROM s GROUP BY 3", "the SELECT list has 1 columns"),
        ("SELECT 1 AS one", "FROM is missing"),
        (
            "SELECT region, sum(id) FROM s GROUP BY region UNION ALL SELECT region, sum(amount) FROM s GROUP BY region",
            "the same rows by the same keys",
        ),
        ("SELECT id FROM nowhere", "no source or materialized view nowhere"),
        ("SELECT count(*) FROM s GROUP BY TUMBLE(ts)", "is not like TUMBLE"),
        ("SELECT count(*) FROM s GROUP BY TUMBLE(ts, id)", "is not a length of time"),
    ],
)
def test_what_makes_no_sense_is_told(query, problem):
    with pytest.raises(QueryFailed, match=problem):
        planned(query)


def test_an_unknown_column_is_told_with_the_nearest_one():
    with pytest.raises(UnknownColumn, match="amount"):
        planned("SELECT amuont FROM s")


def seen(name, written, id_="1"):
    return RelationColumn(name, id_, written, quoted(name))


RENAMED = {"s": (seen("total", "amount", "1"), seen("region", "region", "2"), seen("amount", None, "9"))}


def test_a_name_in_the_text_means_the_column_it_meant_when_it_was_written():
    plan = plan_view("SELECT amount, amount + 1 AS more FROM s WHERE amount > 0", RENAMED)
    assert plan.columns == ("amount", "more")
    (read,) = reads_in(plan.root)
    assert read.selected == ("`total` AS `amount`", "`region` AS `region`", "`amount` AS `#9`")


def test_a_star_shows_the_names_of_today_through_every_query_around_it():
    nested = "WITH c AS (SELECT * FROM s) SELECT DISTINCT * FROM c"
    for query in ("SELECT * FROM s", "SELECT * FROM (SELECT * FROM s)", nested):
        assert plan_view(query, RENAMED).columns == ("total", "region", "amount")
    outer = plan_view("SELECT amount FROM (SELECT * FROM s)", RENAMED)
    assert (outer.columns, outer.ids) == (("amount",), ("amount",))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, SUM(amount), COUNT(*) FROM s WHERE amount > 0 GROUP BY region",
        "SELECT amount FROM (SELECT DISTINCT * FROM s)",
        "SELECT region, MIN(amount) FROM (SELECT * FROM s) GROUP BY region",
        "SELECT * FROM s UNION SELECT * FROM s",
    ],
)
def test_neither_a_rename_nor_an_added_column_moves_state(query):
    before, after = plan_view(query, {"s": ("amount", "region")}), plan_view(query, RENAMED)
    old, new = stateful(before.root), stateful(after.root)
    assert list(map(operator_id, old)) == list(map(operator_id, new))
    assert [each.calls for each in old if isinstance(each, GroupBy)] == [
        each.calls for each in new if isinstance(each, GroupBy)
    ]


def test_a_rename_to_a_name_that_the_view_gives_another_column_is_told():
    with pytest.raises(QueryFailed, match="two columns of the view are named total"):
        plan_view("SELECT *, 1 AS total FROM s", RENAMED)


@pytest.mark.parametrize("name", ["_hash", "_rows", "_HASH"])
def test_distinct_of_a_column_that_its_state_has_is_refused_by_name(name):
    with pytest.raises(QueryFailed, match="of their own"):
        plan_view(f"SELECT DISTINCT id AS {name} FROM s", {"s": ["id"]})  # noqa: S608  # fixed above


def test_a_sub_query_in_from_names_its_own_columns():
    plan = plan_view("SELECT x + 1 AS y FROM (SELECT a AS x FROM s WHERE b > 1) AS t WHERE t.x > 0", {"s": ["a", "b"]})
    assert plan.columns == ("y",)
    with pytest.raises(UnknownColumn):
        plan_view("SELECT b FROM (SELECT a AS x FROM s) AS t", {"s": ["a", "b"]})


def test_a_name_in_group_by_means_a_column_before_it_means_an_alias():
    plan = plan_view("SELECT a % 2 AS a, COUNT(*) AS n FROM s GROUP BY a", {"s": ["a", "b"]})
    assert plan.root.input.input.expressions[0].sql == "a"
    assert plan.key is None
    plan = plan_view("SELECT a % 2 AS parity, COUNT(*) AS n FROM s GROUP BY parity", {"s": ["a", "b"]})
    assert plan.root.input.input.expressions[0].sql == "a % 2"
    assert plan.key == ("parity",)


def test_only_a_whole_number_in_group_by_is_a_place():
    plan = plan_view("SELECT 1.10 AS x, COUNT(*) AS n FROM s GROUP BY 1.10", {"s": ["a"]})
    assert plan.key == ("x",)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("struct(Region, sum(amount))", "STRUCT(k0 AS `Region`, o0 AS `col2`)"),
        ("struct(region AS r, upper(region))", "STRUCT(k0 AS r, UPPER(k0))"),
        ("to_json(struct(s.region))", "TO_JSON(STRUCT(k0 AS `region`))"),
        ("(region, count(*))", "(k0 AS `region`, o0 AS `col2`)"),
        ("struct(meta['Kind'], meta.b)", "STRUCT(k1 AS `Kind`, k2 AS `b`)"),
        ("array(region)", "ARRAY(k0)"),
    ],
)
def test_fields_are_called_as_they_are_written_also_where_groups_are_kept_under_other_names(written, printed):
    query = f"SELECT {written} AS q, count(*) AS n FROM s GROUP BY region, meta['Kind'], meta.b"  # noqa: S608
    root = planned(query).root
    assert isinstance(root, Linear)
    assert texts(root)["q"] == printed


def test_a_function_whose_fields_would_be_called_otherwise_is_refused():
    with pytest.raises(QueryFailed, match="subquery"):
        planned("SELECT arrays_zip(tags) AS q, count(*) AS n FROM s GROUP BY tags")
