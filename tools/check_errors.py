"""Hold `laminae.errors`, the code that raises, the docs and the tests to one another: part of `make check`.

Constructions are found in the syntax tree, so an error that no test raises by accident is checked too.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.errors import ERRORS, LaminaeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent

# Raised by parts that are not built yet. A code leaves this list with its first use.
NOT_RAISED_YET: frozenset[str] = frozenset()

# Its tests name errors as examples of the table, not because they raise them.
TABLE_TESTS = "test_error_table.py"

CODES = {error.__name__: code for code, error in LaminaeError.classes.items()}


@dataclass(frozen=True, slots=True)
class Construction:
    """One place in the source that makes an error; `parameters` is None where the call does not name them."""

    code: str
    place: str
    parameters: frozenset[str] | None


def problems(root: Path) -> list[str]:
    made = [found for path, tree in _trees(root / "src") for found in constructions(tree, str(path.relative_to(root)))]
    tested = {name for path, tree in _trees(root / "tests") if path.name != TABLE_TESTS for name in names(tree)}
    page = (root / "docs" / "reference" / "errors.md").read_text(encoding="utf-8").splitlines()
    return [*table_problems(page), *parameter_problems(made), *use_problems({found.code for found in made}, tested)]


def table_problems(page: Iterable[str]) -> Iterator[str]:
    headings = set(page)
    for code, row in ERRORS.items():
        if not row.remedy.strip():
            yield f"{code}: has no remedy"
        if f"## {code}" not in headings:
            yield f"{code}: has no entry in docs/reference/errors.md, run `make docs`"


def parameter_problems(made: Iterable[Construction]) -> Iterator[str]:
    for found in made:
        expected = frozenset(ERRORS[found.code].parameters)
        if found.parameters is None:
            yield f"{found.place}: {found.code} is made without naming its parameters {sorted(expected)}"
        elif found.parameters != expected:
            differs = sorted(found.parameters ^ expected)
            yield f"{found.place}: {found.code} needs exactly {sorted(expected)}, differs in {differs}"


def use_problems(used: set[str], tested: set[str]) -> Iterator[str]:
    for name, code in CODES.items():
        if code in used and not tested & {name, code}:
            yield f"{code}: no test names {name}"
        if code in used and code in NOT_RAISED_YET:
            yield f"{code}: is in use now, take it off NOT_RAISED_YET in tools/check_errors.py"
        if code not in used | NOT_RAISED_YET:
            yield f"{code}: nothing in src makes it"
    yield from (f"{code}: is on NOT_RAISED_YET and not in laminae.errors" for code in NOT_RAISED_YET - ERRORS.keys())


def constructions(tree: ast.Module, path: str) -> Iterator[Construction]:
    """Calls of an error class, and a `raise` of the bare class, which would fail for want of parameters."""
    own = dict(_imported_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (code := _code(node.func, own)):
            named = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
            is_named = not node.args and len(named) == len(node.keywords)
            yield Construction(code, f"{path}:{node.lineno}", frozenset(named) if is_named else None)
        elif isinstance(node, ast.Raise) and node.exc is not None and (code := _code(node.exc, own)):
            yield Construction(code, f"{path}:{node.lineno}", None)


def names(tree: ast.Module) -> Iterator[str]:
    """Every name and every string of a test file: an error is named by its class or by its code."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                yield name


def _code(called: ast.expr, own: dict[str, str]) -> str | None:
    match called:
        case ast.Name(id=name):
            return CODES.get(own.get(name, name))
        case ast.Attribute(attr=name):
            return CODES.get(name)
    return None


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a file calls the classes it imports from `laminae.errors`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "laminae.errors":
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)


def _trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"), str(path))


def main() -> int:
    found = problems(ROOT)
    for problem in found:
        print(problem)
    print(f"{len(ERRORS)} errors, {len(found)} problems; not raised yet: {', '.join(sorted(NOT_RAISED_YET)) or 'none'}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
