"""The pages of the documentation as programs: their Python and SQL run, and print what stands below them."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import laminae

ROOT = Path(__file__).resolve().parents[2]
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
DOCUMENTS = [*FRONT, *sorted((ROOT / "docs").rglob("*.md"))]
# Pages whose blocks need what `make services` starts; the ports in them are those of examples.
ON_SERVICES = [
    ROOT / "docs" / "guides" / f"{name}.md"
    for name in ("debezium-to-postgresql", "kafka-and-a-registry", "write-to-kafka", "write-to-postgresql")
]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED_CODE = re.compile(r"(?:-- refused|# raises): (?P<code>[A-Z_]+)\n")


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


def run_page(path: Path, text: str, db: laminae.Database) -> int:
    """Run the blocks of a page one after the other; `db` is what a block calls so, until one says otherwise.

    Returns how many outputs were compared with what the page shows.
    """
    namespace: dict[str, object] = {"__name__": "document", "db": db}
    printed: str | None = None
    compared = 0
    for block in blocks_of(text):
        if block.language in ("python", "sql"):
            printed = run_block(block, namespace, path)
        elif block.language == "text" and printed is not None:
            assert plain(printed) == plain(block.code), f"{path}:{block.line} shows another output"
            compared += 1
        else:
            printed = None
    if isinstance(own := namespace["db"], laminae.Database):
        own.close()
    return compared


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
