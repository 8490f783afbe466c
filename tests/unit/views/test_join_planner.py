"""Joins of a view: which column a name means, what becomes of a condition, and what identifies a row of the result."""

# ruff: noqa: S608  # the texts are made of names in this module
from __future__ import annotations

import pytest

from laminae.errors import AmbiguousColumn, QueryFailed, UnknownColumn, UnsupportedSql
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import Comparison, Join, JoinKey, JoinKind, Linear
from laminae.views.planner import RelationColumn, plan_view

RELATIONS = {
    "orders": ("id", "customer", "amount", "place"),
    "customers": ("customer", "name", "city"),
    "items": ("order", "sku", "quantity"),
}
KEYS = {"orders": ("id",), "customers": ("customer",), "items": ("order", "sku")}


def planned(query: str):
    return plan_view(query, RELATIONS, KEYS)


def joins(query: str) -> list[Join]:
    return [operator for operator in stateful(planned(query).root) if isinstance(operator, Join)]


def join_of(query: str) -> Join:
    (join,) = joins(query)
    return join


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("JOIN", JoinKind.INNER),
        ("INNER JOIN", JoinKind.INNER),
        ("LEFT JOIN", JoinKind.LEFT),
        ("LEFT OUTER JOIN", JoinKind.LEFT),
        ("RIGHT OUTER JOIN", JoinKind.RIGHT),
        ("FULL JOIN", JoinKind.FULL),
        ("SEMI JOIN", JoinKind.SEMI),
        ("LEFT SEMI JOIN", JoinKind.SEMI),
        ("ANTI JOIN", JoinKind.ANTI),
        ("LEFT ANTI JOIN", JoinKind.ANTI),
    ],
)
def test_every_kind_of_join_is_planned(words, kind):
    join = join_of(f"SELECT o.id FROM orders o {words} customers c ON o.customer = c.customer")
    assert (join.kind, join.keys) == (kind, (JoinKey("o.customer", "c.customer"),))


def test_only_columns_that_the_query_mentions_are_stored():
    join = join_of("SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.customer")
    assert join.left.columns == ("o.id", "o.customer")
    assert join.right.columns == ("c.customer", "c.name")


def test_names_without_relation_are_found_in_either_relation():
    assert planned("SELECT id, city FROM orders o JOIN customers c ON o.customer = c.customer").columns == (
        "id",
        "city",
    )


def test_name_that_two_relations_have_is_ambiguous():
    with pytest.raises(AmbiguousColumn, match=r"customer may be any of o\.customer, c\.customer"):
        planned("SELECT customer FROM orders o JOIN customers c ON o.customer = c.customer")


def test_unknown_column_names_its_relation():
    with pytest.raises(UnknownColumn, match="c has no column nam"):
        planned("SELECT c.nam FROM orders o JOIN customers c ON o.customer = c.customer")


def test_relation_named_twice_without_alias_is_refused():
    with pytest.raises(QueryFailed, match="two relations called orders"):
        planned("SELECT 1 AS x FROM orders JOIN orders ON orders.id = orders.id")


def test_self_join_has_one_side_for_each_alias():
    join = join_of("SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer")
    assert join.columns == ("a.id", "a.customer", "b.id", "b.customer")


def test_using_shows_one_column_before_the_others():
    plan = planned("SELECT * FROM orders LEFT JOIN customers USING (customer)")
    assert plan.columns == ("customer", "id", "amount", "place", "name", "city")
    assert plan.key == ("id",)


def test_using_of_a_full_join_shows_the_value_of_whichever_side_has_one():
    root = planned("SELECT customer, name FROM orders FULL JOIN customers USING (customer)").root
    assert isinstance(root, Linear)
    assert isinstance(root.input, Linear)
    assert root.input.expressions[-1].sql == "coalesce(`orders.customer`, `customers.customer`)"


def test_natural_join_uses_the_common_columns():
    join = join_of("SELECT id, name FROM orders NATURAL JOIN customers")
    assert join.keys == (JoinKey("orders.customer", "customers.customer"),)


def test_star_of_one_relation():
    assert planned("SELECT c.* FROM orders o JOIN customers c ON o.customer = c.customer").columns == (
        "customer",
        "name",
        "city",
    )


def test_star_except_a_column_of_one_side():
    query = "SELECT * EXCEPT (c.customer) FROM orders o JOIN customers c ON o.customer = c.customer"
    assert planned(query).columns == ("id", "customer", "amount", "place", "name", "city")


def test_field_of_a_struct_follows_its_relation():
    root = planned("SELECT o.place.x FROM orders o JOIN customers c ON o.customer = c.customer").root
    assert root.expressions[0].sql == "`o.place`.x"


def test_expression_of_one_side_is_a_computed_key():
    join = join_of("SELECT o.id FROM orders o JOIN customers c ON upper(o.place) = c.name")
    assert join.keys[0].left.startswith("on_")
    assert join.left.expressions[-1].sql == "UPPER(`o.place`)"


def test_null_safe_equality_is_a_key():
    join = join_of("SELECT o.id FROM orders o JOIN customers c ON o.customer <=> c.customer")
    assert join.keys == (JoinKey("o.customer", "c.customer", is_null_safe=True),)


def test_sides_of_an_equality_may_be_swapped():
    join = join_of("SELECT o.id FROM orders o JOIN customers c ON c.customer = o.customer")
    assert join.keys == (JoinKey("o.customer", "c.customer"),)


def test_other_comparison_filters_an_inner_join():
    root = planned("SELECT o.id FROM orders o JOIN customers c ON o.customer = c.customer AND o.amount > c.city").root
    assert root.input.condition == "((`o.amount`) > (`c.city`))"
    assert root.input.input.residual == ()


def test_other_comparison_is_residual_in_an_outer_join():
    join = join_of("SELECT o.id FROM orders o LEFT JOIN customers c ON o.customer = c.customer AND c.city < o.amount")
    (comparison,) = join.residual
    assert isinstance(comparison, Comparison)
    assert comparison.sign == ">"
    assert join.left.expressions[-1].sql == "`o.amount`"


@pytest.mark.parametrize(
    ("kind", "condition", "side"),
    [
        ("LEFT", "c.city = 'x'", "right"),
        ("RIGHT", "o.amount > 1", "left"),
        ("SEMI", "o.amount > 1", "left"),
        ("SEMI", "c.city = 'x'", "right"),
        ("ANTI", "c.city = 'x'", "right"),
        ("INNER", "o.amount > 1", "left"),
    ],
)
def test_condition_on_a_side_whose_rows_are_not_kept_filters_that_side(kind, condition, side):
    join = join_of(f"SELECT 1 AS x FROM orders o {kind} JOIN customers c ON o.customer = c.customer AND {condition}")
    assert getattr(join, side).condition is not None
    assert join.residual == ()


@pytest.mark.parametrize(
    ("kind", "condition"),
    [("LEFT", "o.amount > 1"), ("RIGHT", "c.city = 'x'"), ("FULL", "o.amount > 1"), ("ANTI", "o.amount > 1")],
)
def test_condition_on_a_side_whose_rows_are_kept_decides_on_partners(kind, condition):
    join = join_of(f"SELECT 1 AS x FROM orders o {kind} JOIN customers c ON o.customer = c.customer AND {condition}")
    assert [comparison.sign for comparison in join.residual] == ["="]
    assert all(getattr(side, "condition", None) is None for side in (join.left, join.right))


def test_comma_joins_by_the_equalities_of_where():
    query = "SELECT o.id FROM orders o, items i, customers c WHERE c.customer = o.customer AND o.id = i.order"
    assert [join.keys for join in joins(query)] == [
        (JoinKey("o.customer", "c.customer"),),
        (JoinKey("o.id", "i.order"),),
    ]


def test_comma_shows_columns_in_the_order_of_from():
    query = "SELECT * EXCEPT (c.customer) FROM orders o, items i, customers c WHERE c.customer = o.customer"
    with pytest.raises(UnsupportedSql, match="without an equality"):
        planned(query)
    whole = planned(f"{query} AND i.order = c.name")
    assert whole.columns[4:] == ("order", "sku", "quantity", "name", "city")


def test_join_in_parentheses_is_a_side():
    query = "SELECT o.id FROM orders o JOIN (items i JOIN customers c ON i.sku = c.name) ON o.id = i.order"
    outer, inner = joins(query)
    assert outer.right == inner


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.customer", ("id",)),
        ("SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.customer", ("id",)),
        ("SELECT o.id, c.name FROM customers c RIGHT JOIN orders o ON o.customer = c.customer", ("id",)),
        ("SELECT o.id, c.customer FROM orders o FULL JOIN customers c ON o.customer = c.customer", ("id", "customer")),
        ("SELECT o.id, p.id AS other FROM orders o JOIN orders p ON o.customer = p.customer", ("id", "other")),
        ("SELECT o.id FROM orders o ANTI JOIN customers c ON o.customer = c.customer", ("id",)),
        ("SELECT o.amount FROM orders o JOIN customers c ON o.customer = c.customer", None),
    ],
)
def test_key_of_the_result_follows_from_the_keys_of_the_sides(query, key):
    assert planned(query).key == key


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT o.id FROM orders o CROSS JOIN customers c", "CROSS JOIN"),
        ("SELECT o.id FROM orders o JOIN customers c ON o.amount > c.city", "without an equality"),
        ("SELECT o.id FROM orders o LEFT JOIN customers c ON o.id = c.name AND o.id + c.city > 1", "does not compare"),
        (
            "SELECT count(*) AS n FROM orders o JOIN customers c ON o.id = c.name GROUP BY window(o.place, '1 hour')",
            "win",
        ),
    ],
)
def test_join_that_cannot_be_kept_is_refused_by_name(query, reason):
    with pytest.raises(UnsupportedSql, match=reason):
        planned(query)


def test_more_than_twelve_relations_are_refused():
    chain = " ".join(f"JOIN orders o{n} ON o{n}.id = o0.id" for n in range(1, 13))
    with pytest.raises(QueryFailed, match="at most 12 relations"):
        planned(f"SELECT o0.id FROM orders o0 {chain}")


def test_column_that_is_added_under_a_star_moves_no_state():
    query = "SELECT o.*, c.name FROM orders o JOIN customers c ON o.customer = c.customer"
    before = plan_view(query, RELATIONS, KEYS)
    columns = [RelationColumn(name, str(n), name, f"`{name}`") for n, name in enumerate(RELATIONS["orders"])]
    columns.append(RelationColumn("note", "9", None, "`note`"))
    after = plan_view(query, {**RELATIONS, "orders": columns}, KEYS)
    assert after.columns == ("id", "customer", "amount", "place", "note", "name")
    assert [*map(operator_id, stateful(before.root))] == [*map(operator_id, stateful(after.root))]
