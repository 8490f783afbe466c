"""What a catalog or a store said of a problem, as it may be shown: one line, without the secrets it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.secrets import MASK, masked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def why(problem: Exception, secrets: Iterable[str] = ()) -> str:
    """What went wrong in one line; the texts of clients go on for many."""
    return (_hidden(str(problem), secrets).splitlines() or [type(problem).__name__])[0]


def cause(problem: Exception, secrets: Iterable[str] = ()) -> Exception | None:
    """The problem, to be named as the cause of ours; None where a text behind it has a secret: a traceback has all."""
    hidden, told = tuple(secrets), [problem, *_behind(problem)]
    return problem if all(_hidden(str(each), hidden) == str(each) for each in told) else None


def _behind(problem: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = problem
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        found = found.__cause__ or found.__context__
        if found is not None:
            yield found


def _hidden(text: str, secrets: Iterable[str]) -> str:
    # Servers quote what they refuse, in words of their own; of a credential its second part is the secret.
    parts = {part for secret in secrets for part in (secret, secret.partition(":")[2]) if part}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, MASK)
    return masked(text)
