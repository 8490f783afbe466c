"""Deep, wide and long texts are read or refused, never a crash; and reading is not started before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from laminae.errors import DdlSyntaxError
from laminae.sql import AlterColumnType, CreateSource, Query, parse, to_sql


def deep(levels: int) -> str:
    return f"ALTER SOURCE s ALTER COLUMN c TYPE {'ARRAY<' * (levels - 1)}INT{'>' * (levels - 1)}"


def test_a_type_of_fifty_levels_is_read_and_printed() -> None:
    text = "INT"
    for level in range(50):
        text = [f"ARRAY<{text}>", f"STRUCT<a: {text}>", f"MAP<STRING, {text}>"][level % 3]
    (statement,) = parse(f"ALTER SOURCE s ALTER COLUMN c TYPE {text}")
    assert isinstance(statement, AlterColumnType)
    assert to_sql(statement).endswith(text)


def test_a_hundred_levels_are_the_limit() -> None:
    assert parse(deep(100))
    with pytest.raises(DdlSyntaxError, match="nested deeper than 100 levels"):
        parse(deep(101))


@pytest.mark.parametrize("levels", [1_000, 50_000])
def test_a_very_deep_type_is_an_error(levels: int) -> None:
    with pytest.raises(DdlSyntaxError, match="nested deeper"):
        parse(deep(levels))
    with pytest.raises(DdlSyntaxError, match="ends too early"):
        parse("ALTER SOURCE s ALTER COLUMN c TYPE " + "ARRAY<" * levels)


def test_ten_thousand_columns_are_read() -> None:
    columns = ", ".join(f"c{number} STRUCT<a: INT, b: STRING> NOT NULL DEFAULT NULL" for number in range(10_000))
    (source,) = parse(f"CREATE SOURCE s ({columns})")
    assert isinstance(source, CreateSource)
    assert len(source.columns) == 10_000
    assert source.columns[-1].type == pa.struct({"a": pa.int32(), "b": pa.string()})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "emit a " * 30_000 + ")",
        "SELECT " + "(" * 100_000,
        "CREATE SOURCE s WITH (" + "token" * 120_000,
        "CREATE SOURCE s WITH (" + "a/*" * 50_000,
        "CREATE SOURCE s WITH (" + "a--" * 50_000,
        "CREATE SOURCE s WITH (" + "token=x y " * 20_000,
        "/*" + "*" * 200_000,
        "SELECT '" + "''" * 100_000,
        "SHOW " + "x" * 200_000,
        "`" * 100_001,
    ],
    ids=lambda text: text[:30],
)
def test_a_hostile_text_is_refused_in_linear_time(text: str) -> None:
    # Quadratic reading of these takes minutes, so that the test run itself would show it.
    with pytest.raises(DdlSyntaxError):
        parse(text)


def test_a_thousand_statements_are_read_from_one_text() -> None:
    assert parse("SELECT ';';\n" * 1_000) == (Query("SELECT ';'"),) * 1_000


def test_importing_the_package_loads_no_parser() -> None:
    script = "import laminae, laminae.sql, sys; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
