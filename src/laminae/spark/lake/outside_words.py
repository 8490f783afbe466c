"""What a catalog or a store said of a problem, as it may be shown: one line, without the secrets it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.secrets import MASK, masked

if TYPE_CHECKING:
    from collections.abc import Iterable


def why(problem: Exception, secrets: Iterable[str] = ()) -> str:
    """What went wrong in one line; the texts of clients go on for many."""
    return (_hidden(str(problem), secrets).splitlines() or [type(problem).__name__])[0]


def cause(problem: Exception, secrets: Iterable[str] = ()) -> Exception | None:
    """The problem, to be named as the cause of ours; None where its text has a secret, which a traceback would show."""
    return problem if _hidden(str(problem), secrets) == str(problem) else None


def _hidden(text: str, secrets: Iterable[str]) -> str:
    # Servers quote what they refuse, in words of their own.
    for secret in secrets:
        text = text.replace(secret, MASK)
    return masked(text)
