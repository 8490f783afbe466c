"""How many examples a law is held against: a quarter of them in `make test`, all of them in `make chaos`."""

from __future__ import annotations

import os

ALL_EXAMPLES = "LAMINAE_ALL_EXAMPLES"


def examples(count: int) -> int:
    return count if os.environ.get(ALL_EXAMPLES) else count // 4
