"""Names in Spark's SQL: what is quoted can be taken out again, and what is no name is not taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import laminae as lm
from laminae.errors import DdlSyntaxError, DuplicateColumn, InvalidName
from laminae.schema.identifiers import collation_key, column_name_problem, quoted, unquoted
from tests.support.hostile_names import FOLDED_PAIRS, HOSTILE_NAMES, REFUSED_NAMES


@given(st.text(min_size=1))
def test_a_quoted_name_is_read_back_as_it_was(name):
    assert unquoted(quoted(name)) == name


@pytest.mark.parametrize("sql", ["a.b", "`a`.`b`", "a + 1", "1", "null", "TRUE", "f(x)", "`a` + `b`", "`", "", "'a'"])
def test_an_expression_that_is_no_column_is_not_taken_for_one(sql):
    assert unquoted(sql) is None


def test_every_hostile_name_is_accepted_and_every_impossible_one_refused(tmp_path):
    assert [name for name in HOSTILE_NAMES if column_name_problem(name)] == []
    assert len({collation_key(name) for name in HOSTILE_NAMES}) == len(HOSTILE_NAMES)
    with lm.connect(str(tmp_path / "home")) as db:
        db.sql("CREATE SOURCE s (id INT) WITH (connector = 'push')")
        for name in REFUSED_NAMES:
            assert column_name_problem(name)
            with pytest.raises(InvalidName if name.strip("\x00") else DdlSyntaxError):
                db.sql(f"ALTER SOURCE s RENAME COLUMN id TO {quoted(name)}")


@pytest.mark.parametrize(("one", "other"), FOLDED_PAIRS)
def test_two_names_that_a_reader_takes_for_one_are_refused_together(tmp_path, one, other):
    with lm.connect(str(tmp_path / "home")) as db, pytest.raises(DuplicateColumn):
        db.sql(f"CREATE SOURCE s ({quoted(one)} INT, {quoted(other)} INT) WITH (connector = 'push')")
