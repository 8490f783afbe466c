"""Solve the dependency versions and write them, with hashes and without any index address, to requirements/*.txt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {
    "requirements/base.txt": ["pyproject.toml"],
    "requirements/dev.txt": ["pyproject.toml", "--all-extras", "--group", "dev"],
}
COMMON = [
    *("-c", "requirements/constraints.in", "--universal", "--python-version", "3.11"),
    *("--generate-hashes", "--no-emit-index-url", "--no-emit-find-links"),
]


def main() -> int:
    uv = Path(sys.executable).with_name("uv")
    for target, inputs in LOCKS.items():
        command = [str(uv), "pip", "compile", *inputs, *COMMON, "--custom-compile-command", "make lock", "-o", target]
        subprocess.run([*command, "--quiet"], cwd=ROOT, check=True)
        print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
