"""Hold the source tree to limits of size, to the one door into the JVM and to short walks: part of `make check`.

Every number above a general limit is listed with today's value. A value may fall, and then the table must say so; it
never rises.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/laminae"
TESTS = "tests"
WALKS = "docs/architecture.md"
_MODULE = re.compile(r"`([a-z_0-9/]+\.py)`")


@dataclass(frozen=True, slots=True)
class Limits:
    """Paths are below the package. A listed module or folder has its own limit, any other the general one.

    `packages_only`: folders that hold packages and no module but `__init__`. Below `jvm_door` the JVM may be reached.
    """

    lines_per_module: int
    modules_per_folder: int
    packages_only: tuple[str, ...]
    jvm_door: str
    long_modules: Mapping[str, int]
    full_folders: Mapping[str, int]
    walks: Mapping[str, int]
    """The most modules that a walk of `docs/architecture.md` may pass, by the title of its section."""


LIMITS = Limits(
    lines_per_module=400,
    modules_per_folder=15,
    packages_only=("spark",),
    jvm_door="spark/catalyst",
    long_modules={},
    full_folders={},
    walks={"The life of a record": 60, "The life of an ALTER": 45, "The life of a correction": 45},
)
# What reaches the JVM: attributes of PySpark's objects, by attribute or by `getattr`, and imports of py4j, of PySpark's
# classes above it and of the functions that look up Java classes.
JVM_NAMES = frozenset(
    {"_jvm", "_jdf", "_jc", "_jsparkSession", "_jsc", "_jsq", "_jwrite", "_gateway", "java_exception"}
)
JVM_MODULES = ("py4j", "pyspark.java_gateway", "pyspark.sql.classic")
JVM_FUNCTIONS = frozenset({"java_class", "scala_object", "scala_items", "callback_gateway"})


@dataclass(frozen=True, slots=True)
class Tree:
    """`lines` and `jvm_uses` by module, `modules` by folder without its `__init__`; paths are below the package."""

    lines: Mapping[str, int]
    modules: Mapping[str, int]
    jvm_uses: Mapping[str, int]


def measured(package: Path) -> Tree:
    lines, modules, uses = dict[str, int](), Counter[str](), dict[str, int]()
    for path in sorted(package.rglob("*.py")):
        name, text = path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")
        lines[name] = len(text.splitlines())
        if path.name != "__init__.py":
            modules[path.parent.relative_to(package).as_posix()] += 1
        if count := jvm_uses(ast.parse(text, str(path))):
            uses[name] = count
    return Tree(lines, modules, uses)


def jvm_uses(tree: ast.Module) -> int:
    """Attributes of `self` are the module's own, whatever their name."""
    return sum(map(_reaches_the_jvm, ast.walk(tree)))


def _reaches_the_jvm(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self")):
            return False
        case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in JVM_NAMES
        case ast.ImportFrom(module=str(module), names=names):
            return _is_jvm_module(module) or any(alias.name in JVM_FUNCTIONS for alias in names)
        case ast.Import(names=names):
            return any(_is_jvm_module(alias.name) for alias in names)
    return False


def _is_jvm_module(name: str) -> bool:
    return any(f"{name}.".startswith(f"{module}.") for module in JVM_MODULES)


def problems(tree: Tree, limits: Limits) -> Iterator[str]:
    folders = {**dict.fromkeys(limits.packages_only, 0), **limits.full_folders}
    yield from _beyond(tree.lines, limits.lines_per_module, limits.long_modules, "lines")
    yield from _beyond(tree.modules, limits.modules_per_folder, folders, "modules")
    for name, count in tree.jvm_uses.items():
        if not name.startswith(f"{limits.jvm_door}/"):
            yield f"{name}: {count} uses of the JVM outside {limits.jvm_door}"


def _beyond(
    found: Mapping[str, int], limit: int, listed: Mapping[str, int], what: str, *, may_fall: bool = False
) -> Iterator[str]:
    for name in sorted({*found, *listed}):
        count, allowed = found.get(name, 0), listed.get(name, limit)
        if count > allowed:
            yield f"{name}: {count} {what}, the limit is {allowed}"
        elif name in listed and count < allowed and not may_fall:
            yield f"{name}: {count} {what}; lower the {allowed} in tools/check_tree.py, or remove its line"


def walk_lengths(page: str, titles: Iterable[str]) -> dict[str, int]:
    """How many modules the numbered steps of each walk name."""
    sections = {part.partition("\n")[0].strip(): part for part in page.split("\n## ")}
    return {title: len(set(_MODULE.findall(_numbered(sections.get(title, ""))))) for title in titles}


def _numbered(section: str) -> str:
    """The numbered steps with their continuation lines; the lists below them show side ways."""
    return "\n".join(line for line in section.splitlines() if re.match(r"\d+\. | {3}", line))


def repeated_test_names(tests: Path) -> Iterator[str]:
    """pytest imports a test module by its file name alone, so two of one name end the run before its first test."""
    names = Counter(path.name for path in tests.rglob("test_*.py"))
    for name, count in sorted(names.items()):
        if count > 1:
            yield f"{name}: {count} test modules have this name; pytest can import one of them"


def main(root: Path = ROOT, limits: Limits = LIMITS) -> int:
    tree = measured(root / PACKAGE)
    page = (root / WALKS).read_text(encoding="utf-8") if limits.walks else ""
    walks = walk_lengths(page, limits.walks)
    found = [*problems(tree, limits), *_beyond(walks, 0, limits.walks, "modules in the walk", may_fall=True)]
    found += repeated_test_names(root / TESTS)
    for problem in found:
        print(problem)
    sizes = tree.lines.values()
    print(f"{sum(sizes)} lines, {len(sizes)} modules, median {median(sizes):.0f} lines; {len(found)} problems")
    for title, count in walks.items():
        print(f"{title}: {count} modules")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
