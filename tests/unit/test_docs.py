"""The documents are true: their Python and SQL run, their output is what they print, their commands and links exist."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from tools import reference

import laminae
from laminae.cli.app import app
from laminae.errors import ERRORS
from tests.support.spark_sessions import end_session

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED_CODE = re.compile(r"(?:-- refused|# raises): (?P<code>[A-Z_]+)\n")
LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#]+)")
HEAVY = ("pyspark", "pyiceberg", "confluent_kafka", "psycopg", "duckdb")


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` is where its code begins in the document."""

    language: str
    code: str
    line: int

    @property
    def expected_code(self) -> str | None:
        """The error code that a first line `-- refused: CODE` or `# raises: CODE` announces."""
        found = EXPECTED_CODE.match(self.code)
        return found["code"] if found else None


def blocks_of(text: str) -> list[Block]:
    return [
        Block(found["language"], found["code"], text.count("\n", 0, found.start("code")) + 1)
        for found in FENCE.finditer(text)
    ]


def run_block(block: Block, namespace: dict[str, object], path: Path) -> str:
    """What the block prints: its output, the answer of its SQL, or the error it announces."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            if block.language == "sql":
                db = namespace["db"]
                assert isinstance(db, laminae.Database)
                db.sql(block.code).show()
            else:
                # The empty lines make a traceback point into the document itself.
                exec(compile("\n" * (block.line - 1) + block.code, str(path), "exec"), namespace)
    except laminae.LaminaeError as error:
        if error.code != block.expected_code:
            raise
        return str(error)
    assert block.expected_code is None, f"{path}:{block.line}: {block.expected_code} was not raised"
    return printed.getvalue()


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module", autouse=True)
def session_of_the_pages() -> Iterator[None]:
    """Pages share a session; the tests behind them begin with their own."""
    yield
    end_session()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_examples_run_and_print_what_the_page_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    text = path.read_text(encoding="utf-8")
    if "SparkSession.builder" in text:
        end_session()
    with laminae.connect(str(tmp_path / "shared")) as db:
        namespace: dict[str, object] = {"__name__": "document", "db": db}
        printed: str | None = None
        for block in blocks_of(text):
            if block.language in ("python", "sql"):
                printed = run_block(block, namespace, path)
            elif block.language == "text" and printed is not None:
                assert plain(printed) == plain(block.code), f"{path}:{block.line} shows another output"
            else:
                printed = None
        if isinstance(own := namespace["db"], laminae.Database):
            own.close()
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
