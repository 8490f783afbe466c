"""Laws of the SQL: a printed statement reads back as itself, and no text gets anything but statements or our error."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae import sql as ddl
from laminae.errors import LaminaeError
from laminae.schema.types import TYPES, array_type, map_type, sql_type, struct_field, struct_type
from laminae.sql.source_builder import COMPATIBILITY_MODES
from tests.support.examples import examples

M = TypeVar("M", datetime, time)

thorough = settings(
    max_examples=examples(1000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

storable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
PLAIN_WORDS = "c type if primary watermark order SELECT date null emit 1a a.b ; -- /* a`b it's größe 日本"
words = st.sampled_from([*PLAIN_WORDS.split(), "a b", 'a"b', "\n", "x" * 300])
names = st.deferred(lambda: words | st.text(storable, min_size=1, max_size=12))
awkward = st.sampled_from(["it's", "\\", "\\'", "''", "\n", "--", "\\u0041", "a;b", "\0", "\x0001", "${env:X}"])
texts = st.deferred(lambda: awkward | st.text(storable, max_size=20))
paths = st.lists(names, min_size=1, max_size=3).map(tuple)
flags = st.booleans()

leaves = st.sampled_from([row.arrow for row in TYPES]) | st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: pa.decimal128(precision, scale))
)


def any_field(name: str, type_: pa.DataType, nullable: bool, comment: str | None) -> pa.Field:
    return struct_field(name, type_, nullable or pa.types.is_null(type_), comment)


def first_of_two(moment: M) -> M:
    """The earlier of an hour that a clock shows twice: SQL cannot say which."""
    return moment.replace(fold=0)


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.builds(any_field, names, inner, flags, st.none() | texts)
    return (
        inner.map(array_type)
        | st.builds(map_type, inner.filter(lambda key: not pa.types.is_null(key)), inner)
        | st.lists(fields, max_size=3, unique_by=lambda field: field.name).map(struct_type)
    )


types = st.deferred(lambda: st.recursive(leaves, nested, max_leaves=6))
# VOID NOT NULL is refused, so a column that may be NOT NULL is of another type.
solid_types = types.filter(lambda type_: not pa.types.is_null(type_))
microseconds = st.integers(-(2**63) + 1, 2**63 - 1)
anything = (
    st.none()
    | flags
    | st.integers(-(10**38) + 1, 10**38 - 1)
    | st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.binary(max_size=8)
    | st.dates()
    | st.times().map(first_of_two)
    | st.datetimes().map(first_of_two)
    | st.datetimes(timezones=st.just(UTC)).map(first_of_two)
    | microseconds.map(lambda value: timedelta(microseconds=value))
)
scalars = st.deferred(lambda: anything)
literals = st.builds(ddl.Literal, scalars | st.lists(scalars, max_size=3).map(tuple))
positions = st.builds(ddl.First) | st.builds(ddl.After, names)
delays = st.builds(ddl.Interval, st.integers(0, 2**63 - 1))
columns = st.builds(ddl.ColumnDef, names, solid_types, flags, st.none() | literals)
options = st.lists(st.builds(ddl.Option, names, texts), max_size=3, unique_by=lambda option: option.name).map(tuple)
QUERIES = [
    "SELECT 1",
    "WITH a AS (SELECT ';') SELECT emit FROM a",
    "TABLE `x;y`",
    "VALUES ('EMIT CHANGES')",
    '(SELECT "a;")',
    "SELECT a -- note ;\n, b FROM t",
    "FROM t SELECT r'\\' /* ; */ + 1",
]
queries = st.sampled_from(QUERIES)
emits = st.sampled_from(
    [ddl.EmitChanges(), ddl.EmitOnUpdate(), ddl.EmitOnWatermark(), ddl.EmitOnWindowClose(), ddl.EmitFinal()]
) | st.builds(ddl.EmitEvery, st.builds(ddl.Interval, st.integers(1, 2**63 - 1)))
modes = st.sampled_from(COMPATIBILITY_MODES)
change_ids = st.integers(0, 2**63 - 1)
kinds = st.sampled_from(ddl.ObjectKind)

STATEMENTS: dict[type, st.SearchStrategy[ddl.Statement]] = {
    ddl.CreateSource: st.builds(
        ddl.CreateSource,
        names,
        st.lists(columns, max_size=4).map(tuple),
        st.none() | st.builds(ddl.Watermark, paths, delays),
        st.lists(names, max_size=2).map(tuple),
        options,
        flags,
    ),
    ddl.AddColumn: st.builds(
        ddl.AddColumn, names, paths, solid_types, flags, st.none() | literals, st.none() | positions, flags, flags
    ),
    ddl.DropColumn: st.builds(ddl.DropColumn, names, paths, flags, flags, flags),
    ddl.AlterColumnType: st.builds(ddl.AlterColumnType, names, paths, types, flags),
    ddl.SetNotNull: st.builds(ddl.SetNotNull, names, paths, flags),
    ddl.DropNotNull: st.builds(ddl.DropNotNull, names, paths, flags),
    ddl.SetDefault: st.builds(ddl.SetDefault, names, paths, literals, flags),
    ddl.DropDefault: st.builds(ddl.DropDefault, names, paths, flags),
    ddl.MoveColumn: st.builds(ddl.MoveColumn, names, paths, positions, flags),
    ddl.RenameColumn: st.builds(ddl.RenameColumn, names, paths, names, flags),
    ddl.RefreshSchema: st.builds(ddl.RefreshSchema, names),
    ddl.SetCompatibility: st.builds(ddl.SetCompatibility, names, modes),
    ddl.SetOptions: st.builds(ddl.SetOptions, names, options.filter(bool)),
    ddl.ConfirmChange: st.builds(ddl.ConfirmChange, names, change_ids),
    ddl.RejectChange: st.builds(ddl.RejectChange, names, change_ids),
    ddl.SetSetting: st.builds(ddl.SetSetting, names, texts),
    ddl.DescribeSource: st.builds(ddl.DescribeSource, names),
    ddl.Show: st.builds(ddl.Show, kinds),
    ddl.CreateView: st.builds(ddl.CreateView, names, queries, options, st.none() | emits, flags, st.just(False)),
    ddl.ResumeView: st.builds(ddl.ResumeView, names),
    ddl.CreateSink: st.builds(ddl.CreateSink, names, names, options, flags),
    ddl.Drop: st.builds(ddl.Drop, kinds, names, flags, st.none() | st.sampled_from(ddl.DropBehaviour)),
    ddl.Query: st.builds(ddl.Query, queries),
}
plain = st.one_of(*STATEMENTS.values())
statements = plain | st.builds(ddl.Explain, plain) | st.builds(ddl.ExplainEpoch, names)


def test_every_statement_class_is_generated() -> None:
    assert {*STATEMENTS, ddl.Explain, ddl.ExplainEpoch} == set(ddl.Statement.__args__)


@pytest.mark.parametrize("strategy", STATEMENTS.values(), ids=[row.__name__ for row in STATEMENTS])
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_each_class_of_statement_reads_back_as_itself(
    strategy: st.SearchStrategy[ddl.Statement], data: st.DataObject
) -> None:
    statement = data.draw(strategy)
    # By repr too: 1, TRUE and 1.0 are equal in Python and differ in SQL.
    assert ddl.parse(ddl.to_sql(statement)) == (statement,)
    assert repr(ddl.parse(ddl.to_sql(statement))) == repr((statement,))


@thorough
@given(st.lists(statements, max_size=3))
def test_a_script_of_printed_statements_reads_back_in_order(script: list[ddl.Statement]) -> None:
    assert ddl.parse(";\n".join(map(ddl.to_sql, script))) == tuple(script)


@thorough
@given(types)
def test_a_printed_type_reads_back_with_its_comments(type_: pa.DataType) -> None:
    (statement,) = ddl.parse(f"ALTER SOURCE s ALTER COLUMN c TYPE {sql_type(type_)}")
    assert isinstance(statement, ddl.AlterColumnType)
    assert statement.type.equals(type_, check_metadata=True)


def is_answered(text: str) -> bool:
    """Whether the text is refused with a remedy, or is statements that read back as themselves."""
    try:
        read = ddl.parse(text)
    except LaminaeError as error:
        return bool(error.remedy.strip())
    return ddl.parse(";\n".join(map(ddl.to_sql, read))) == read


@thorough
@given(st.text())
def test_any_text_gives_statements_or_our_error(text: str) -> None:
    assert is_answered(text)


@thorough
@given(statements, st.integers(0, 200), st.integers(0, 200), st.text(max_size=3))
def test_a_damaged_statement_gives_statements_or_our_error(
    statement: ddl.Statement, start: int, length: int, inserted: str
) -> None:
    text = ddl.to_sql(statement)
    assert is_answered(text[:start])
    assert is_answered(text[:start] + inserted + text[start + length :])


@thorough
@given(statements, st.randoms(use_true_random=False))
def test_shuffled_words_give_statements_or_our_error(statement: ddl.Statement, random: object) -> None:
    parts = ddl.to_sql(statement).split(" ")
    random.shuffle(parts)  # type: ignore[attr-defined] # hypothesis gives a random.Random
    assert is_answered(" ".join(parts))
