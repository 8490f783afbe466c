"""Shapes that are known to differ: to be emptied. Each names its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

    from tests.support.view_fuzz.queries import View

KNOWN: dict[str, re.Pattern[str]] = {}


def known_reason(view: View) -> str | None:
    return next((reason for reason, pattern in KNOWN.items() if pattern.search(view.query)), None)
