"""The documents are true: their Python and SQL run, their output is what they print, their commands and links exist."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import typer
from tools import reference

import laminae
from laminae.api.database import SPARK_RELATIONS
from laminae.cli.app import app
from laminae.engine.catalog_query.introspection import RELATIONS
from laminae.errors import ERRORS
from tests.support.pages import DOCUMENTS, ON_SERVICES, ROOT, blocks_of, name_of, run_page
from tests.support.spark_sessions import end_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#]+)")
HEAVY = ("pyspark", "pyiceberg", "confluent_kafka", "psycopg", "duckdb")


@pytest.fixture(scope="module", autouse=True)
def session_of_the_pages() -> Iterator[None]:
    """Pages share a session; the tests behind them begin with their own."""
    yield
    end_session()


@pytest.mark.spark
@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path not in ON_SERVICES], ids=name_of)
def test_examples_run_and_print_what_the_page_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    text = path.read_text(encoding="utf-8")
    if "SparkSession.builder" in text:
        end_session()
    with laminae.connect(str(tmp_path / "shared")) as db:
        run_page(path, text, db)
    if "SparkSession.builder" in text:
        end_session()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_commands_in_shell_blocks_exist(path: Path) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    commands = typer.main.get_group(app).commands
    shell = "".join(block.code for block in blocks_of(path.read_text(encoding="utf-8")) if block.language == "sh")
    assert set(re.findall(r"\bmake (\w+)", shell)) <= set(targets)
    assert set(re.findall(r"\blaminae ([a-z][\w-]*)", shell)) <= set(commands)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    targets = [found["target"] for found in LINK.finditer(path.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_announced_errors_are_in_the_table(path: Path) -> None:
    announced = {block.expected_code for block in blocks_of(path.read_text(encoding="utf-8"))}
    assert announced - {None} <= ERRORS.keys()


def test_every_command_has_its_place_in_the_command_reference() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    group = typer.main.get_group(app)
    assert [name for name in group.commands if f"## laminae {name}\n" not in page] == []


def test_every_page_is_linked_from_the_first() -> None:
    front = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = (page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "docs").rglob("*.md")))
    # Single decisions are linked from their index.
    assert [page for page in pages if not page.startswith("docs/decisions/0") and page not in front] == []


def test_every_method_of_a_database_is_in_the_python_reference() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    methods = [name for name in vars(laminae.Database) if not name.startswith("_")]
    assert [name for name in methods if f"`db.{name}(" not in page and f"`{name}()`" not in page] == []


def test_every_relation_of_the_catalog_is_in_the_sql_reference() -> None:
    page = (ROOT / "docs" / "reference" / "sql.md").read_text(encoding="utf-8")
    assert [name for name in (*RELATIONS, *SPARK_RELATIONS) if f"`laminar_catalog.{name}`" not in page] == []


def test_every_public_name_is_in_the_python_reference() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in laminae.__all__ if name not in page] == []


def test_generated_pages_are_current() -> None:
    assert reference.stale_pages(reference.PAGES_DIR) == []


def test_a_page_that_differs_from_its_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "PAGES_DIR", tmp_path)
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "types.md").write_text("changed by hand", encoding="utf-8")
    capsys.readouterr()
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().out.startswith("docs/reference/types.md differs")


def test_importing_laminae_loads_no_engine_and_no_client() -> None:
    program = f"import sys, laminae; print([name for name in {HEAVY} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
