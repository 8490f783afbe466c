"""Refuse queries that are nested too deeply for Python's recursion limit, with an error that says so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from laminae.errors import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

PROBLEM = (
    "its expressions are nested too deeply: compute a part of them in a sub-query in FROM, or in a view of its own"
)


@contextmanager
def refuse_deep_nesting() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise QueryFailed(problem=PROBLEM) from None
