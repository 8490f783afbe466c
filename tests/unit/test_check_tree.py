"""The limits of the source tree: `make check` fails when a listed number rises, and when it falls unnoticed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tools import check_tree
from tools.check_tree import LIMITS, Limits

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Limits(
    lines_per_module=3,
    modules_per_folder=2,
    packages_only=("spark",),
    jvm_door="spark/catalyst",
    long_modules={},
    full_folders={},
    walks={},
)


def write(root: Path, name: str, text: str = "x = 1\n") -> None:
    path = root / check_tree.PACKAGE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def complaints(root: Path, limits: Limits = SMALL) -> list[str]:
    return list(check_tree.problems(check_tree.measured(root / check_tree.PACKAGE), limits))


def test_a_tree_within_its_limits_passes_and_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "__init__.py", "")
    write(tmp_path, "sql/parser.py", "x = 1\ny = 2\n")
    write(tmp_path, "spark/catalyst/jvm.py", "def of(spark):\n    return spark._jvm\n")
    assert check_tree.main(tmp_path, SMALL) == 0
    assert capsys.readouterr().out == "4 lines, 3 modules, median 2 lines; 0 problems\n"


def test_a_module_past_its_lines_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "sql/parser.py", "x = 1\n" * 4)
    assert check_tree.main(tmp_path, SMALL) == 1
    assert capsys.readouterr().out.startswith("sql/parser.py: 4 lines, the limit is 3\n")


def test_a_folder_past_its_modules_is_named(tmp_path: Path) -> None:
    for name in ("__init__", "a", "b", "c"):
        write(tmp_path, f"sql/{name}.py")
    assert complaints(tmp_path) == ["sql: 3 modules, the limit is 2"]


def test_a_module_beside_the_packages_of_spark_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "spark/__init__.py")
    write(tmp_path, "spark/stray.py")
    assert complaints(tmp_path) == ["spark: 1 modules, the limit is 0"]


@pytest.mark.parametrize(
    "text",
    [
        "from py4j.protocol import Py4JError\n",
        "import py4j.java_gateway\n",
        "from pyspark.sql.classic.dataframe import DataFrame\n",
        "from laminae.spark.catalyst.jvm import java_class\n",
        "plan = frame._jdf\n",
        "jvm = getattr(spark, '_jvm')\n",
    ],
)
def test_the_jvm_is_reached_through_one_folder(tmp_path: Path, text: str) -> None:
    write(tmp_path, "spark/catalyst/jvm.py", text)
    assert complaints(tmp_path) == []
    write(tmp_path, "spark/views/plan.py", text)
    assert complaints(tmp_path) == ["spark/views/plan.py: 1 uses of the JVM outside spark/catalyst"]


def test_an_attribute_of_self_is_no_use_of_the_jvm(tmp_path: Path) -> None:
    write(tmp_path, "spark/driver/pipeline.py", "def pid(self):\n    return self._jvm\n")
    assert complaints(tmp_path) == []


def test_a_listed_number_may_be_reached_and_not_exceeded(tmp_path: Path) -> None:
    write(tmp_path, "sql/parser.py", "x = 1\n" * 5)
    assert complaints(tmp_path, replace(SMALL, long_modules={"sql/parser.py": 5})) == []
    assert complaints(tmp_path, replace(SMALL, long_modules={"sql/parser.py": 4})) == [
        "sql/parser.py: 5 lines, the limit is 4"
    ]


def test_a_listed_number_falls_with_its_module(tmp_path: Path) -> None:
    write(tmp_path, "sql/parser.py")
    assert complaints(tmp_path, replace(SMALL, long_modules={"sql/parser.py": 5})) == [
        "sql/parser.py: 1 lines; lower the 5 in tools/check_tree.py, or remove its line"
    ]


def test_every_listed_number_is_above_the_general_limit() -> None:
    assert [name for name, lines in LIMITS.long_modules.items() if lines <= LIMITS.lines_per_module] == []
    assert [name for name, modules in LIMITS.full_folders.items() if modules <= LIMITS.modules_per_folder] == []


def test_a_walk_past_its_modules_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "sql/parser.py")
    page = tmp_path / check_tree.WALKS
    page.parent.mkdir()
    steps = "1. `sql/parser.py` reads.\n2. `sql/grammar.py` and\n   `sql/parser.py` again.\n- `aside.py` is no step.\n"
    page.write_text(f"# Page\n\n## A walk\n\n{steps}\n## Another\n\n1. `other.py`\n", encoding="utf-8")
    assert check_tree.main(tmp_path, replace(SMALL, walks={"A walk": 2})) == 0
    assert capsys.readouterr().out.endswith("0 problems\nA walk: 2 modules\n")
    assert check_tree.main(tmp_path, replace(SMALL, walks={"A walk": 1})) == 1
    assert capsys.readouterr().out.startswith("A walk: 2 modules in the walk, the limit is 1\n")


def test_two_test_modules_of_one_name_fail_the_check(tmp_path: Path) -> None:
    for folder in ("unit", "integration"):
        path = tmp_path / folder / "test_sql_text.py"
        path.parent.mkdir()
        path.write_text("", encoding="utf-8")
    (problem,) = check_tree.repeated_test_names(tmp_path)
    assert problem.startswith("test_sql_text.py: 2 test modules")
