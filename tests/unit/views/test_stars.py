"""What a `*` in a view stands for: the columns of its relation, or a refusal by name; never another column."""

from __future__ import annotations

import pytest

from laminae.catalog.model import EXACT_READING
from laminae.errors import QueryFailed, UnknownColumn, UnsupportedSql
from laminae.views.planner import RelationColumn, plan_view

RELATIONS = {"s": ("a", "b", "k0", "o0", "x", "ts", "st", "arr")}


@pytest.fixture(params=(1, EXACT_READING), ids=("by sqlglot", "as Spark"))
def planned(request):
    return lambda query, relations=RELATIONS: plan_view(query, relations, None, request.param)


@pytest.mark.parametrize("star", ["st.*", "s.st.*", "st.* EXCEPT (a)", "st.inner.*"])
def test_a_star_of_a_struct_is_not_taken_for_all_columns(planned, star):
    with pytest.raises(UnsupportedSql, match=r"\* of a struct"):
        planned(f"SELECT {star} FROM s")  # noqa: S608  # fixed above


@pytest.mark.parametrize(
    ("star", "left_out"),
    [
        ("*", ()),
        ("t.*", ()),
        ("* EXCEPT (a)", ("a",)),
        ("* EXCEPT (t.a, B)", ("a", "b")),
        ("t.* EXCEPT (t.a, T.`b`)", ("a", "b")),
    ],
)
def test_a_star_leaves_out_the_columns_in_except(planned, star, left_out):
    columns = planned(f"SELECT {star} FROM s AS t").columns  # noqa: S608  # fixed above
    assert columns == tuple(name for name in RELATIONS["s"] if name not in left_out)


@pytest.mark.parametrize(
    ("star", "error", "match"),
    [
        ("* EXCEPT (st.b)", UnsupportedSql, "a field of a struct in EXCEPT"),
        ("* EXCEPT (a, s.st.b)", UnsupportedSql, "a field of a struct in EXCEPT"),
        ("s.* EXCEPT (st.b)", UnsupportedSql, "a field of a struct in EXCEPT"),
        ("* EXCEPT (nope)", UnknownColumn, "nope"),
        ("s.* EXCEPT (a, s.nope)", UnknownColumn, "nope"),
    ],
)
def test_except_names_columns_of_the_relation_and_nothing_else(planned, star, error, match):
    with pytest.raises(error, match=match):
        planned(f"SELECT {star} FROM s")  # noqa: S608  # fixed above


def test_except_means_the_column_that_had_the_name_when_the_view_was_written(planned):
    columns = (RelationColumn("now", "1", "a", "`now`"), RelationColumn("a", "2", None, "`a`"))
    assert planned("SELECT * EXCEPT (a), 1 AS one FROM s", {"s": columns}).columns == ("a", "one")


@pytest.mark.parametrize(
    "expression",
    [
        "to_json(struct(*))",
        "to_json(struct(s.*))",
        "hash(*)",
        "count(s.*)",
        "count(* EXCEPT (a))",
        "count(DISTINCT *)",
        "sum(hash(*))",
        "struct(st.*)",
        "max(struct(*)) FILTER (WHERE a > 1)",
    ],
)
def test_a_star_inside_an_expression_is_refused_as_it_would_take_hidden_columns(planned, expression):
    with pytest.raises(UnsupportedSql, match=r"\* inside an expression"):
        planned(f"SELECT {expression} AS q FROM s")  # noqa: S608  # fixed above


@pytest.mark.parametrize("where", ["WHERE hash(*) = 1", "GROUP BY hash(*)", "HAVING max(hash(*)) = 1"])
def test_a_star_inside_an_expression_is_refused_in_every_clause(planned, where):
    with pytest.raises(UnsupportedSql, match=r"\* inside an expression"):
        planned(f"SELECT count(*) AS n FROM s {where}")  # noqa: S608  # fixed above


def test_a_refused_star_is_told_with_its_place():
    with pytest.raises(UnsupportedSql, match="line 2, column 15"):
        plan_view("SELECT a,\n  count(1), f(*) AS q FROM s", RELATIONS)


def test_a_star_without_any_column_is_refused(planned):
    with pytest.raises(QueryFailed, match="excludes every column"):
        planned("SELECT * EXCEPT (a) FROM s", {"s": ("a",)})
