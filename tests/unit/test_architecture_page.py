"""The architecture page and CONTRIBUTING name what is there: files, functions, fault points, packages."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest
from tools import architecture

from laminae.engine import faults
from tests.support.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = ROOT / "src" / "laminae"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`(?P<file>[\w/]+\.py)`(?P<names>(?:,?\s+`[A-Za-z_][\w.]*`)+)")
"""A file and, directly behind it, the names in it: `spark/sinks/modes.py` `parts_of`, `changes_in`."""


def references(text: str) -> list[tuple[str, str]]:
    found = ((match["file"], re.findall(r"`([\w.]+)`", match["names"])) for match in REFERENCE.finditer(text))
    return sorted({(file, name) for file, names in found for name in names})


@cache
def names_in(path: Path) -> frozenset[str]:
    """Top-level names, and members of classes behind the name of their class."""
    found = set[str]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        own = _names(node)
        found.update(own)
        if isinstance(node, ast.ClassDef):
            found.update(f"{node.name}.{name}" for inner in node.body for name in _names(inner))
    return frozenset(found)


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return []


@pytest.mark.parametrize("text", [PAGE, CONTRIBUTING], ids=["architecture", "CONTRIBUTING"])
def test_every_file_and_name_of_the_walks_exists(text: str) -> None:
    missing = [
        f"{file} {name}"
        for file, name in references(text)
        if not (PACKAGE / file).exists() or name not in names_in(PACKAGE / file)
    ]
    assert references(text)
    assert missing == []


def test_every_fault_point_is_on_the_architecture_page() -> None:
    assert [point for point in faults.POINTS if f"`{point}`" not in PAGE] == []


def test_every_package_has_a_line_in_contributing() -> None:
    folders = [folder for base in (PACKAGE, PACKAGE / "spark") for folder in sorted(base.iterdir())]
    packages = [folder.relative_to(PACKAGE).as_posix() for folder in folders if (folder / "__init__.py").exists()]
    assert [name for name in packages if f"| `{name}` |" not in CONTRIBUTING] == []


def test_every_test_that_contributing_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)`", CONTRIBUTING)
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_decision_is_in_their_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = sorted(page.name for page in folder.glob("0*.md"))
    assert [page for page in pages if f"[{page[:4]}]({page})" not in index] == []


def test_the_picture_of_the_architecture_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert architecture.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


def test_every_arrow_of_the_picture_joins_two_boxes() -> None:
    ends = {end for arrow in architecture.ARROWS for end in (arrow.start[0], arrow.end[0])}
    assert ends == set(architecture.BOXES)
